"""A branch stores its own exchanges, and reads the others from its parent."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tracefork_core import Tape, TapeError
from tracefork_core.tape.log import LogReader
from tracefork_core.tape.rewrite import rewrite

from .runs import read, transcript, write

RUN = transcript(60)
TAIL = [(asked + b" again", answered + b" again") for asked, answered in RUN[55:]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Record sixty exchanges."""
    write(tmp_path / "run.tape", RUN)
    return tmp_path / "run.tape"


def branch(parent: Path, name: str, at: int = 55) -> Path:
    """Record a branch that leaves a tape at an exchange."""
    path = parent.with_name(name)
    with Tape.open(parent) as tape:
        write(path, TAIL, first=at, parent=tape, at=at)
    return path


def test_a_branch_reads_as_a_whole(run: Path) -> None:
    """Exchanges of the parent come first, then the branch's own, under one digest."""
    path = branch(run, "branch.tape")
    assert read(path) == RUN[:55] + TAIL
    with Tape.open(path) as tape:
        assert tape.receipt is not None
        assert tape.receipt.exchanges == 60
        assert tape.receipt.digest == tape.digest
        assert tape.origin is not None
        assert (tape.origin.name, tape.origin.at) == ("run.tape", 55)


def test_a_hundred_branches_store_only_their_own_exchanges(run: Path) -> None:
    """Shared exchanges are not written again."""
    sizes = [branch(run, f"branch-{i}.tape").stat().st_size for i in range(100)]
    assert max(sizes) < run.stat().st_size / 2
    alone = run.with_name("alone.tape")
    write(alone, RUN[:55] + TAIL)
    assert max(sizes) < alone.stat().st_size / 2


def test_a_branch_stores_no_body_that_its_parent_has(run: Path) -> None:
    """The body is read from the parent, whichever exchange it belongs to."""
    path = run.with_name("again.tape")
    with Tape.open(run) as tape:
        write(path, RUN[55:], first=55, parent=tape, at=55)
    assert read(path) == RUN
    with closing(sqlite3.connect(path)) as db:
        log = LogReader(db)
        assert not any(log.bodies(segment) for segment, _ in log.segments())


def test_a_branch_of_a_branch_reads_as_a_whole(run: Path) -> None:
    """Each level adds its own exchanges."""
    first = branch(run, "first.tape")
    with Tape.open(first) as tape:
        write(run.with_name("second.tape"), TAIL[:1], first=58, parent=tape, at=58)
    assert read(run.with_name("second.tape")) == RUN[:55] + TAIL[:3] + TAIL[:1]


def test_a_branch_without_its_parent_is_refused(run: Path) -> None:
    """The parent must be in the folder of the branch."""
    path = branch(run, "branch.tape")
    run.unlink()
    with pytest.raises(TapeError, match=r"run\.tape"):
        read(path)


def test_a_branch_of_a_changed_parent_is_refused(run: Path) -> None:
    """Another run under the parent's name is not accepted."""
    path = branch(run, "branch.tape")
    run.unlink()
    write(run, transcript(60, "other"))
    with pytest.raises(TapeError, match=r"run\.tape"):
        read(path)


@pytest.mark.parametrize(
    "name", ["../run.tape", "/etc/passwd", "..", "a\\b", "", "run.tape\0x", "branch.tape"]
)
def test_a_parent_outside_the_folder_of_its_branch_is_refused(run: Path, name: str) -> None:
    """A stranger's tape must not make tracefork open other files, or itself without end."""
    path = branch(run, "branch.tape")
    document = f'{{"name":{name!r},"at":1,"digest":""}}'.replace("'", '"').encode()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'origin'", (document,))
    with pytest.raises(TapeError, match=r"parent|origin"):
        read(path)


def test_a_packed_branch_needs_no_parent(run: Path) -> None:
    """It has the same bytes and the same digest in another folder."""
    path = branch(run, "branch.tape")
    far = run.parent / "far"
    far.mkdir()
    with Tape.open(path) as tape:
        assert rewrite(tape, far / "packed.tape") == tape.digest
    shutil.rmtree(run.parent / "far" / "none", ignore_errors=True)
    run.unlink()
    assert read(far / "packed.tape") == RUN[:55] + TAIL
    with Tape.open(far / "packed.tape") as packed:
        assert packed.origin is None
        assert packed.receipt is not None
        assert packed.receipt.digest == packed.digest
