"""The turns that deliveries have on a branch which it shares with its parent.

Up to the first live delivery, things come on a branch in the turns they had. What came after that
has another place among all of the branch; what did not come is the last, or has no place where the
branch was cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracefork_core.tape.event import Moved
from tracefork_core.tape.exchange import Exchange


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
