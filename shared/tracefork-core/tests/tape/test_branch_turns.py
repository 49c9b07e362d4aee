"""On a branch, shared exchanges may have other turns than on the parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import Tape, TapeError
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import TURNS, Moved

from .runs import put, transcript, write

RUN = transcript(4)


def branch(folder: Path, *moves: Moved, closed: bool = True) -> Path:
    """Record a run in which exchange n has the turns 2n and 2n + 1, and a branch of it."""
    write(folder / "run.tape", RUN)
    with Tape.open(folder / "run.tape") as parent:
        writer = TapeWriter(folder / "branch.tape", describe(), parent=parent, at=3)
    for one in moves:
        writer.note(TURNS, aside=one)
    put(writer, RUN[3:], first=3)
    if closed:
        writer.close(Receipt(digest="", exchanges=0))
    else:
        writer.abort()
    return folder / "branch.tape"


def turns(path: Path) -> list[list[list[int]]]:
    with Tape.open(path) as tape:
        return [exchange.aside.turns for exchange in tape.exchanges[:3]]


def test_without_turn_events_a_branch_has_its_parents_turns(tmp_path: Path) -> None:
    """Most branches have none: all shared exchanges arrive before the branch's own."""
    assert turns(branch(tmp_path)) == [[[0, 2]], [[2, 2]], [[4, 2]]]


def test_several_turn_events_are_merged(tmp_path: Path) -> None:
    """The events are written as deliveries happen."""
    path = branch(tmp_path, Moved(3, []), Moved(3, [(4, 9)]), Moved(3, [(3, 11), (5, 12)]))
    assert turns(path) == [[[0, 2]], [[2, 1], [11, 1]], [[9, 1], [12, 1]]]


def test_a_delivery_that_never_arrived_has_no_turn(tmp_path: Path) -> None:
    """The branch was cut off before that delivery."""
    assert turns(branch(tmp_path, Moved(3, [(3, 8)]), closed=False)) == [
        [[0, 2]],
        [[2, 1], [8, 1]],
        [],
    ]


@pytest.mark.parametrize(
    "aside", [Moved(0, [(0, -1)]), {"since": "soon", "turns": []}, {"turns": [[1]]}]
)
def test_an_invalid_turn_event_is_refused(tmp_path: Path, aside: object) -> None:
    """A tape from a stranger may hold any value."""
    path = branch(tmp_path, aside)  # type: ignore[arg-type]
    with pytest.raises(TapeError, match=path.name):
        turns(path)
