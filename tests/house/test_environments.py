"""The test command runs core's tests wherever any supported Python works."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

from house.repository import ROOT

OWN = "{}.{}".format(*sys.version_info[:2])
BROKEN = '#!/bin/sh\necho "pyenv: $(basename $0): command not found" >&2\nexit 127\n'


def chosen(*folders: Path) -> str:
    """Return the Python that toxfile.py chooses where PATH has these folders first."""
    path = os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"])
    environment = {
        k: v for k, v in os.environ.items() if k not in {"NEWEST_PYTHON", "PYENV_VERSION"}
    }
    code = "import os, toxfile; print(os.environ['NEWEST_PYTHON'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def command(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(script)
    file.chmod(0o755)


def test_a_shim_that_runs_no_python_is_passed_over(tmp_path: Path) -> None:
    """pyenv puts a command on PATH for every version, also for those it does not run."""
    for version in ("3.13", "3.12"):
        command(tmp_path, f"python{version}", BROKEN)
    assert chosen(tmp_path) == OWN


def test_a_newer_python_that_runs_is_chosen(tmp_path: Path) -> None:
    """The negative control: a command of that name that does answer as 3.13 is taken."""
    command(tmp_path, "python3.13", "#!/bin/sh\necho 3.13\n")
    assert chosen(tmp_path) == "3.13"


def test_core_and_the_benchmarks_ask_for_the_python_that_runs() -> None:
    """An environment that names a version is skipped where that version is missing."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    for name in ("testenv:core", "testenv:benchmarks", "testenv:langgraph-models"):
        assert tox[name]["base_python"] == "python{env:NEWEST_PYTHON}"
    assert "testkit,highest: python{env:NEWEST_PYTHON}" in tox["testenv"]["base_python"]
