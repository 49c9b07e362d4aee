"""Branches: where one comes from, and which turns its shared deliveries have on it.

A branch holds only its own exchanges. Those before lie on its parent, in the same folder, and so do
the bodies that its own are deltas of. So a thousand forks of a run cost a thousand tails.

Up to the first live delivery, deliveries have the same turns on the branch as on the parent. After
that, live deliveries come in between: a delivery of the parent may have another turn on the branch,
or none, if the branch was cut off before it arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape.digest import spelled_text
from tracefork_core.tape.event import Moved
from tracefork_core.tape.exchange import Exchange

_DEEPEST = 64


class Origin(msgspec.Struct, frozen=True):
    """The parent of a branch: the `name` of its file, and the `digest` of its first `at` exchanges.

    `line` names the parents of the parent, nearest first.
    """

    name: str
    at: int
    digest: str
    line: list[str] = []

    @property
    def names(self) -> list[str]:
        """The files that a branch cannot be read without, nearest first."""
        return [self.name, *self.line]


def parent_name(path: Path) -> str:
    """Return the name by which a branch of a tape names it.

    Raises:
        UsageError: it is no text, and a tape holds text.
    """
    if spelled_text(path.name) != path.name:
        raise UsageError(
            f"tracefork: a branch names its parent, and the name of {path} is no text (UTF-8). "
            "Give it another name first."
        )
    return path.name


def read_origin(document: object, own: str) -> Origin | None:
    """Return the origin that the tape of an own name holds, or None where it is no branch.

    Raises:
        TapeError: it names something else than a file beside it, or itself.
    """
    if document is None:
        return None
    try:
        if not isinstance(document, bytes):
            raise TypeError("it is no document")
        origin = msgspec.json.decode(document, type=Origin)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: the tape names no parent that can be: {error}.") from error
    names = origin.names
    # A stranger's tape may not have us open what lies elsewhere.
    if any(name in ("", ".", "..") or not {*name}.isdisjoint("/\\\0") for name in names):
        raise TapeError("tracefork: the parent of a tape lies beside it, and nowhere else.")
    if len(names) > _DEEPEST or len({own, *names}) <= len(names) or origin.at < 0:
        raise TapeError("tracefork: the tape names no parents that can be.")
    return origin


def on_branch(shared: Sequence[Exchange], moves: Iterable[Moved]) -> list[Exchange]:
    """Return the first exchanges of a parent with the turns that they have on its branch."""
    moves = list(moves)
    if not moves:
        return list(shared)
    since = min(one.since for one in moves)
    places = {turn: place for one in moves for turn, place in one.turns}
    return [_moved(exchange, since, places) for exchange in shared]


def _moved(exchange: Exchange, since: int, places: dict[int, int]) -> Exchange:
    runs = []
    for first, count in exchange.aside.turns:
        stay = min(max(since - first, 0), count)
        if stay:
            runs.append([first, stay])
        moved = range(first + stay, first + count)
        runs.extend([places[turn], 1] for turn in moved if turn in places)
    return exchange if runs == exchange.aside.turns else exchange.in_turns(runs)
