"""What is right to say about a planted case, and how what was said compares with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

NOBODY: frozenset[int] = frozenset()
INNOCENT = frozenset({"fails anyway", "not reproducible", "diffuse", "inert", "undecided"})
"""Verdicts that name no unit, or only say where one would look first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict that is right.

    Attributes:
        kind: its kind.
        units: the units it names: all of them, and no other.
        mediators: the units it says pass the fault on.
        optional: units that may be among the mediators or not.
    """

    kind: str
    units: frozenset[int] = NOBODY
    mediators: frozenset[int] = NOBODY
    optional: frozenset[int] = NOBODY

    def is_given_by(
        self, kind: str, units: Collection[int], mediators: Collection[int] = ()
    ) -> bool:
        """Return whether a verdict says this."""
        named = frozenset(mediators) - self.optional
        return (kind, frozenset(units), named) == (self.kind, self.units, self.mediators)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is right to say.

    Attributes:
        answers: any of these is a full verdict; the first is the one that was planted.
        decisive: where the risk jumps for good: any of these is right as the first suspect, None
            stands for nobody.
    """

    answers: tuple[Answer, ...]
    decisive: frozenset[int | None]

    @property
    def guilty(self) -> frozenset[int]:
        """The units that may be named."""
        return frozenset().union(*(answer.units | answer.mediators for answer in self.answers))

    def accuses_falsely(self, kind: str, units: Collection[int], decisive: int | None) -> bool:
        """Return whether a verdict, or its decisive unit, is somebody who has no part in it."""
        named = {*units} if decisive is None else {*units, decisive}
        return kind not in INNOCENT and not self.guilty.issuperset(named)


def nobody(*kinds: str) -> Truth:
    """Return the truth where no unit may be named."""
    return Truth(tuple(Answer(kind) for kind in kinds), frozenset({None}))


def one(unit: int, *mediators: int) -> Truth:
    """Return the truth where one unit doomed the run, and others only passed that on."""
    answer = Answer("single", frozenset({unit}), frozenset(mediators))
    return Truth((answer,), frozenset({unit}))


def several(kind: str, units: Collection[int], decisive: int | None) -> Truth:
    """Return the truth where units did it together, or each would have done."""
    return Truth((Answer(kind, frozenset(units)),), frozenset({decisive}))
