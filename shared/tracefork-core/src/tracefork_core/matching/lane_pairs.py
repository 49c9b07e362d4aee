"""Which recorded lane a lane of a replay is: `--strict` compares their structure.

Two lanes are the same if they have the same place: both were started from the same lane, as the
same of its children (`fetch.2` is the second `fetch`). The names of functions may differ, since a
function may be renamed: a name that the tape does not hold there stands for one recorded name. So
two threads that swapped their work differ, and a thread whose function has a new name does not.

Two kinds of lanes have no place that repeats. The jobs of a pool that no hook sees are numbered by
their first request, so their numbers are paired as they come. The threads without context, and the
processes that they start, have no order at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracefork_core.exchange.lane import UNORDERED, UNSEEN_JOB


class LanePairs:
    """Pairs the lanes of a replay with those of its tape."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)
        """The names of functions below each recorded lane."""
        for lane in set(recorded):
            for parent, name, _ in _places(lane):
                self._names[parent].add(name)
        self._then: dict[tuple[str, str], str] = {}
        self._now: dict[tuple[str, str], str] = {}

    def are_one(self, now: str, then: str) -> bool:
        """Return whether a lane of the replay has the place of a recorded lane."""
        places, recorded = _places(now), _places(then)
        if recorded[0][1] == UNORDERED:
            return places[0][1] == UNORDERED
        if len(places) != len(recorded):
            return False
        return all(
            self._is_paired(parent, (name, number), (name_then, number_then))
            for (_, name, number), (parent, name_then, number_then) in zip(
                places, recorded, strict=True
            )
        )

    def _is_paired(self, parent: str, now: tuple[str, str], then: tuple[str, str]) -> bool:
        """Compare one part of two lanes whose parents are paired; `parent` is the recorded one."""
        if now[0] == then[0] == UNSEEN_JOB:
            return self._pair(parent, ".".join(now), ".".join(then))
        is_renamed = now[0] != then[0]
        if now[1] != then[1] or (is_renamed and (not parent or now[0] in self._names[parent])):
            return False
        return self._pair(parent, now[0], then[0])

    def _pair(self, parent: str, now: str, then: str) -> bool:
        return (
            self._now.setdefault((parent, then), now) == now
            and self._then.setdefault((parent, now), then) == then
        )


def _places(lane: str) -> list[tuple[str, str, str]]:
    """Return each part of a lane: the lane it was started from, its name, and its number."""
    places, parent = [], ""
    for part in lane.split("/"):
        name, _, number = part.rpartition(".")
        if not name or not number.isdecimal():
            name, number = part, ""
        places.append((parent, name, number))
        parent = f"{parent}/{part}" if parent else part
    return places
