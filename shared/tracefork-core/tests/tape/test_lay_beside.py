"""A tape can be linked or copied into another folder, to record branches of it there."""

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


def test_a_closed_tape_is_linked_with_its_parents(tape: Path, folder: Path) -> None:
    """A hard link takes no room."""
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
    """Its log and the exchanges in flight are copied too."""
    writer = TapeWriter(tape, describe())
    put(writer, RUN)
    writer.abort()
    there = lay_beside(tape, folder)
    assert read(there) == RUN
    assert not there.samefile(tape)
    with Tape.open(there) as opened:
        assert not opened.complete
