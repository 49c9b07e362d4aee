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
_LONGEST_NAME = 255


class Origin(msgspec.Struct, frozen=True):
    """The parent of a branch: the `name` of its file, and the `digest` of its first `at` exchanges.

    `line` has the names of the parent's own parents, nearest first.
    """

    name: str
    at: int
    digest: str
    line: list[str] = []

    @property
    def names(self) -> list[str]:
        """The names of all files that a branch needs, nearest first."""
        return [self.name, *self.line]


def parent_name(path: Path) -> str:
    """Return the name by which a branch refers to a tape.

    Raises:
        UsageError: the name is not UTF-8, and tapes hold UTF-8 only.
    """
    if spelled_text(path.name) != path.name:
        raise UsageError(
            f"tracefork: cannot branch from {path}: a branch stores the name of its parent, and "
            "this name is not UTF-8. Rename the tape first."
        )
    return path.name


def read_origin(document: object, own: str) -> Origin | None:
    """Return the origin of the tape named `own`, or None if it is not a branch.

    Raises:
        TapeError: the origin is corrupt, or names a file in another folder, or the tape itself.
    """
    if document is None:
        return None
    try:
        if not isinstance(document, bytes):
            raise TypeError("not a document")
        origin = msgspec.json.decode(document, type=Origin)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise TapeError(
            f"tracefork: the tape is corrupt: its origin cannot be read: {error}."
        ) from error
    names = origin.names
    # A stranger's tape must not make us open files elsewhere.
    if any(name in ("", ".", "..") or not {*name}.isdisjoint("/\\\0") for name in names):
        raise TapeError(
            "tracefork: the tape is corrupt: it names a parent that is not in the same folder."
        )
    longest = max(len(name.encode("utf-8", "surrogatepass")) for name in names)
    if longest > _LONGEST_NAME:
        raise TapeError(
            f"tracefork: the tape is corrupt: the name of its parent has {longest} bytes, and no "
            f"file system holds a name of more than {_LONGEST_NAME}."
        )
    if len(names) > _DEEPEST or len({own, *names}) <= len(names) or origin.at < 0:
        raise TapeError(
            "tracefork: the tape is corrupt: its parents are too many, or name a tape twice."
        )
    return origin


def on_branch(shared: Sequence[Exchange], moves: Iterable[Moved]) -> list[Exchange]:
    """Return the first exchanges of a parent with the turns that they have on its branch."""
    moves = list(moves)
    if not moves:
        return list(shared)
    since = min(moved.since for moved in moves)
    turns = {turn: own_turn for moved in moves for turn, own_turn in moved.turns}
    return [_moved(exchange, since, turns) for exchange in shared]


def _moved(exchange: Exchange, since: int, turns: dict[int, int]) -> Exchange:
    runs = []
    for first, count in exchange.aside.turns:
        stay = min(max(since - first, 0), count)
        if stay:
            runs.append([first, stay])
        moved = range(first + stay, first + count)
        runs.extend([turns[turn], 1] for turn in moved if turn in turns)
    return exchange if runs == exchange.aside.turns else exchange.in_turns(runs)
