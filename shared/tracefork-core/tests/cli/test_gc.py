"""`gc` removes files that nothing needs, and names them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracefork_core import Tape, record
from tracefork_core.cli.main import main
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe

DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with three runs of different age, a branch, and leftovers."""
    for days, name in ((40, "old"), (20, "middle"), (0, "new")):
        path = tmp_path / f"{name}.tape"
        with record(path):
            pass
        then = time.time() - days * DAY
        os.utime(path, (then, then))
    with Tape.open(tmp_path / "old.tape") as parent:
        branch = TapeWriter(tmp_path / "branch.tape", describe(), parent=parent, at=0)
        branch.close(Receipt(digest="", exchanges=0))
    (tmp_path / "gone.tape-wal").touch()
    (tmp_path / "gone.tape-flight").touch()
    (tmp_path / "killed.tape").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_leftover_files_are_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """These are logs without a tape and empty tapes, but no run and no other file."""
    assert main(["gc", str(folder)]) == 0
    assert names(folder) == {
        "old.tape",
        "middle.tape",
        "new.tape",
        "branch.tape",
        "notes.txt",
    }
    out = capsys.readouterr().out
    assert "removed gone.tape-wal: its tape is gone" in out
    assert "removed killed.tape: killed before its first byte" in out
    assert main(["gc", str(folder)]) == 0


def test_a_dry_run_removes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names what would be removed."""
    before = names(folder)
    assert main(["gc", "--dry-run", "--keep", "0", str(folder)]) == 0
    assert names(folder) == before
    assert "would remove middle.tape" in capsys.readouterr().out


def test_a_run_that_a_branch_needs_stays_however_old(folder: Path) -> None:
    """Another old run is removed."""
    assert main(["gc", "--older-than", "10d", str(folder)]) == 0
    assert names(folder) == {"old.tape", "new.tape", "branch.tape", "notes.txt"}


def test_the_newest_runs_are_kept(folder: Path) -> None:
    """--keep counts from the newest; a branch keeps its parent."""
    assert main(["gc", "--keep", "1", str(folder)]) == 0
    kept = names(folder)
    assert len(kept & {"new.tape", "branch.tape"}) == 1
    assert "middle.tape" not in kept
    assert ("old.tape" in kept) == ("branch.tape" in kept)


def test_orphans_are_removed_only_with_the_option(folder: Path) -> None:
    """They cannot be read, but may be the only copy of their exchanges."""
    (folder / "old.tape").unlink()
    assert main(["gc", str(folder)]) == 0
    assert "branch.tape" in names(folder)
    assert main(["gc", "--orphans", str(folder)]) == 0
    assert "branch.tape" not in names(folder)


def test_a_run_that_is_recorded_right_now_stays(folder: Path) -> None:
    """Its log and journal stay too."""
    with record(folder / "now.tape"):
        assert main(["gc", "--keep", "0", str(folder)]) == 0
        assert {"now.tape", "now.tape-wal", "now.tape-flight"} <= names(folder)
    with Tape.open(folder / "now.tape") as tape:
        assert tape.complete


@pytest.mark.parametrize("words", [["--older-than", "soon"], ["--keep", "-1"], ["no-such-folder"]])
def test_an_invalid_argument_removes_nothing(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the option and its value."""
    before = names(folder)
    assert main(["gc", *words]) == 2
    printed = capsys.readouterr().err
    assert [word for word in words if word not in printed] == [], printed
    assert names(folder) == before


def test_scratch_folders_are_removed_after_a_day(folder: Path) -> None:
    """A younger one may belong to a running command; a link of such a name stays."""
    for name, days in ((".tracefork-draft-a", 2), (".tracefork-try-b", 0)):
        (folder / name).mkdir()
        (folder / name / "x.tape").touch()
        then = time.time() - days * DAY
        for path in (folder / name / "x.tape", folder / name):
            os.utime(path, (then, then))
    (folder / "mine").mkdir()
    (folder / ".tracefork-link").symlink_to(folder / "mine")
    assert main(["gc", str(folder)]) == 0
    left = names(folder)
    assert ".tracefork-draft-a" not in left
    assert {".tracefork-try-b", ".tracefork-link", "mine"} <= left


@pytest.mark.parametrize("killed", [True, False])
def test_the_draft_of_a_killed_command_is_removed_at_once(folder: Path, killed: bool) -> None:
    """A running command holds a lock on its draft, and the kernel frees that of a killed one."""
    draft = (
        "import pathlib, sys, time; from tracefork_core.tape.creation import drafted\n"
        "with drafted(pathlib.Path(sys.argv[1])) as draft:\n"
        "    draft.touch(); print(draft.parent.name, flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", draft, str(folder / "packed.tape")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        for path in (folder / name / "packed.tape", folder / name):
            os.utime(path, (time.time() - 2, time.time() - 2))
        if killed:
            process.kill()
            process.wait()
        assert main(["gc", str(folder)]) == 0
        assert (name in names(folder)) is not killed
        process.kill()


def test_a_branch_keeps_its_parent_whatever_it_is_called(folder: Path) -> None:
    """A tape is recognized by its content."""
    (folder / "branch.tape").rename(folder / "branch")
    assert main(["gc", str(folder), "--older-than", "30d"]) == 0
    assert {"old.tape", "branch"} <= names(folder)
    (folder / "branch").unlink()
    assert main(["gc", str(folder), "--older-than", "30d"]) == 0
    assert "old.tape" not in names(folder)
