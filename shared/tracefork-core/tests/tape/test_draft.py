"""A file gets its name only when it is complete; a killed process leaves no partial file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_core import UsageError
from tracefork_core.errors import UnwritableError
from tracefork_core.tape.creation import SCRATCH, drafted

KILLED = """\
import os, signal, sys
from pathlib import Path
from tracefork_core.tape.creation import drafted

with drafted(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


def test_a_complete_draft_gets_its_name(tmp_path: Path) -> None:
    """Nothing else is left in the folder."""
    with drafted(tmp_path / "a") as draft:
        draft.write_text("whole")
        assert list(tmp_path.glob("a")) == []
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "whole")]


def test_a_failed_draft_leaves_no_file(tmp_path: Path) -> None:
    """The draft is removed too."""
    with pytest.raises(KeyError), drafted(tmp_path / "a") as draft:  # noqa: PT012
        draft.write_text("half")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_a_killed_process_leaves_no_file_of_that_name(tmp_path: Path, how: str) -> None:
    """The leftover has a name of its own, so the next draft can start."""
    target = tmp_path / "a"
    process = subprocess.run([sys.executable, "-c", KILLED, str(target), how], check=False)
    assert process.returncode == -getattr(signal, how)
    assert [path.name.startswith(SCRATCH) for path in tmp_path.iterdir()] == [True]
    with drafted(target) as draft:
        assert not draft.exists()
        draft.write_text("whole")
    assert target.read_text() == "whole"


def test_a_second_draft_of_one_name_overwrites_nothing(tmp_path: Path) -> None:
    """The other file may exist before, or appear meanwhile."""
    target = tmp_path / "a"
    with pytest.raises(UsageError, match=target.name), drafted(target) as second:  # noqa: PT012
        second.write_text("second")
        with drafted(target) as first:
            first.write_text("first")
    with pytest.raises(UsageError, match=target.name), drafted(target):
        pass
    assert target.read_text() == "first"


def test_a_draft_in_a_read_only_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block does not run."""

    def refuse(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tracefork_core.tape.creation.mkdtemp", refuse)
    with pytest.raises(UnwritableError, match="Permission denied"), drafted(tmp_path / "a"):
        pass
