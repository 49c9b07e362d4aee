"""The waiting Python runs commands of its own environment, and reports when it has died."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import OPENAI_AGENT, PLAIN_AGENT, Shell
from .preloaded import Preloaded


def test_a_dead_python_is_reported_and_other_environments_get_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reads some variables only when it starts."""
    waits = Preloaded()
    assert waits.run(["--version"], tmp_path, os.environ).returncode == 0
    assert waits.process is not None
    waits.process.kill()
    waits.process.wait()
    with monkeypatch.context() as changed:
        changed.setenv("PYTHONHASHSEED", "1")
        assert waits.run(["--version"], tmp_path, os.environ).returncode == 0
    with pytest.raises(RuntimeError, match=r"has died \(exit status -9\)"):
        waits.run(["--version"], tmp_path, os.environ)


@pytest.mark.parametrize("agent", [PLAIN_AGENT, OPENAI_AGENT], ids=["httpx2", "openai"])
def test_a_client_loaded_before_or_in_the_session_gives_the_same_run(
    shell: Shell, agent: str
) -> None:
    """A tape that was recorded by one kind of Python replays in the other, bit-exact."""
    shell.write("loads.py", f"import sys\n\nprint('httpx2' in sys.modules)\n{agent}")
    recorded = {}
    for name, new in (("fork", {}), ("new", {"LC_NEW": "1"})):
        done = shell.tracefork("record", "--json", "-o", f"{name}.tape", "loads.py", **new)
        recorded[name] = done.document, "True\n" in done.err
    assert [before for _, before in recorded.values()] == [True, False]
    for name, new in (("fork", {"LC_NEW": "1"}), ("new", {})):
        done = shell.tracefork("replay", "--json", f"{name}.tape", "loads.py", **new)
        assert (done.exit, done.document["digest"]) == (0, recorded[name][0]["digest"])
