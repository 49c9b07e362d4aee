"""time-machine brings a pytest plugin; an agent must not notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RECORD = "from tracefork_core import record\nwith record({tape!r}): pass\n"
TESTED = "import sys; print('pytest' in sys.modules)"


def python(*words: str, folder: Path) -> str:
    environment = {**os.environ, "TRACEFORK_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_a_recording_does_not_load_pytest(tmp_path: Path) -> None:
    """Though it is installed."""
    code = RECORD.format(tape="run.tape") + TESTED
    assert python("-c", code, folder=tmp_path) == "False"


def test_time_machine_alone_loads_pytest(tmp_path: Path) -> None:
    """The control: the test above looks at the right thing."""
    assert python("-c", f"import time_machine\n{TESTED}", folder=tmp_path) == "True"


def test_pytest_can_be_imported_after_a_recording(tmp_path: Path) -> None:
    """It was hidden only while time-machine was loaded."""
    code = RECORD.format(tape="run.tape") + f"import pytest\n{TESTED}"
    assert python("-c", code, folder=tmp_path) == "True"


def test_a_recorded_pytest_has_the_plugin(tmp_path: Path) -> None:
    """`tracefork record -m pytest` runs tests that use time-machine's fixture."""
    (tmp_path / "test_it.py").write_text("def test_it(time_machine): time_machine.move_to(0)\n")
    words = ["record", "-o", "run.tape", "-m", "pytest", "--", "-q", "test_it.py"]
    assert "1 passed" in python("-m", "tracefork_core.cli.main", *words, folder=tmp_path)
