"""A tape that others branch from in a folder of their own is there as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.rewrite import lay_beside

from .runs import put, read, transcript, write

RUN = transcript(3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


def test_a_closed_tape_takes_no_room(tape: Path, folder: Path) -> None:
    """It is the same file under a second name; its parents come along."""
    write(tape, RUN)
    branch = tape.with_name("branch.tape")
    with Tape.open(tape) as parent:
        write(branch, RUN[1:], first=1, parent=parent, at=1)
    there = lay_beside(branch, folder)
    assert there == folder / "branch.tape"
    assert read(there) == RUN
    for name in (tape.name, branch.name):
        assert (folder / name).samefile(tape.with_name(name))


def test_a_tape_that_was_cut_off_is_copied(tape: Path, folder: Path) -> None:
    """With what lies beside it: its log, and what was in flight."""
    writer = TapeWriter(tape, describe())
    put(writer, RUN)
    writer.abort()
    there = lay_beside(tape, folder)
    assert read(there) == RUN
    assert not there.samefile(tape)
    with Tape.open(there) as opened:
        assert not opened.complete
