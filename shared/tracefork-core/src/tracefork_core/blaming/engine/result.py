"""What a blame comes to: plain records, written as JSON as they are."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal[
    "single",
    "joint",
    "over-determined",
    "preempted",
    "diffuse",
    "fails anyway",
    "not reproducible",
    "inert",
    "passed",
    "undecided",
]
"""Who is to blame.

One unit; several that were needed; several each of which was enough; one that came before another
that would have been; no single one; nobody, the task fails; nobody, the recorded failure was
chance; unknown, since drawing again changes nothing; nobody, since the run was good (said by who
carries out the blame); unknown.
"""

Interval = tuple[float, float]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to blame.

    Attributes:
        kind: what kind of answer this is.
        units: the units that are named; none where `kind` names nobody.
        mediators: units that only passed the failure on.
        sets: the units by what would have been enough: one set, or alternatives.
        responsibility: of each named unit, 1 over how many have to be repaired (Chockler & Halpern
            2004).
        certain: whether every named unit is proven to make a difference; else it is most likely.
        reason: why it is undecided, or what is behind the kind, in words.
    """

    kind: Kind
    units: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    responsibility: float = 0.0
    certain: bool = False
    reason: str = ""


class Decisive(msgspec.Struct, frozen=True, kw_only=True):
    """The unit at which the run was most likely lost.

    Attributes:
        unit: which.
        probability: that it is the one, under the change-point model.
        effect: how much more often a run fails that keeps it than one that decides it again.
        interval: of the effect, simultaneous over positions, valid at any time.
        evalue: against "no effect".
        kept: how often a run fails that keeps it.
        redecided: how often one fails that decides it again.
        corrected: the effect without the errors of the oracle, where they are known.
    """

    unit: int
    probability: float
    effect: float
    interval: Interval
    evalue: float
    kept: float | None
    redecided: float | None
    corrected: float


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The curve at one position: everything before a unit kept, it and all after it live.

    Attributes:
        position: how many units are kept, or with groups kept as a whole, in their order.
        unit: the first that is live; None where all are kept.
        forks: runs with an outcome.
        failures: those of them that failed.
        undefined: runs without an outcome.
        rate: failures by forks; None without forks.
        interval: of the rate, simultaneous over positions, valid at any time, whatever the runs
            without an outcome would have come to.
        believed: the risk here under the change-point model.
    """

    position: int
    unit: int | None
    forks: int
    failures: int
    undefined: int
    rate: float | None
    interval: Interval
    believed: float


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one unit.

    Attributes:
        unit: which.
        chance: that it is the decisive one.
        gain: by how much it raised the risk for good, as believed; of a group, the sum.
        rescue: how often a run is good that starts from here; None where none was tried.
        flips: runs that were good where it alone, or it and what follows, was drawn otherwise.
        redrawn: runs in which it was drawn otherwise, at its recorded place.
        flip_interval: of flips by redrawn, Wilson: only right had the number been fixed before.
        repeated: times it gave the recorded answer again.
        drawn: times it was drawn again at its recorded place.
    """

    unit: int
    chance: float
    gain: float
    rescue: float | None
    flips: int
    redrawn: int
    flip_interval: Interval
    repeated: int
    drawn: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What the units of a group did together: gains add up."""

    units: tuple[int, ...]
    chance: float
    gain: float


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How often something failed, with an interval that is valid at any time."""

    forks: int
    failures: int
    undefined: int
    rate: float | None
    interval: Interval


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A negative control.

    Attributes:
        name: replay, placebo, null step or drift.
        passed: whether it is as it should be.
        forks: runs it stands on.
        says: what was seen.
        unit: what was tried, where it is one unit.
        interval: of the difference that should not be there.
        evalue: against "nothing changed".
    """

    name: str
    passed: bool
    forks: int
    says: str
    unit: int | None = None
    interval: Interval | None = None
    evalue: float | None = None


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A repair that was tried.

    Attributes:
        unit: what was given another response.
        trial: the trial that response is from.
        alone: whether the run is good then with all else exactly as recorded.
        held: how the run does with all else as recorded.
        live: how it does with all before it as recorded, and all after it live.
    """

    unit: int
    trial: int
    alone: bool
    held: Rate
    live: Rate


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What of the blame falls to a unit, among those that are named (Shapley 1953)."""

    unit: int
    share: float


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """How two units work together: above 0 each needs the other, below 0 either would do."""

    units: tuple[int, int]
    value: float


class Undefined(msgspec.Struct, frozen=True, kw_only=True):
    """Runs without an outcome: how many of how many, and why."""

    forks: int
    of: int
    reasons: dict[str, int]


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What it took. `usd` is None where a price was not known."""

    forks: int
    live_calls: int
    tokens: int
    usd: float | None
    seconds: float
    purposes: dict[str, int]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a blame comes to. `credible` holds None where nobody may be decisive."""

    verdict: Verdict
    decisive: Decisive | None
    credible: tuple[int | None, ...]
    curve: tuple[Point, ...]
    baseline: Rate
    controls: tuple[Control, ...]
    units: tuple[Unit, ...]
    groups: tuple[Group, ...]
    repair: Repair | None
    shares: tuple[Share, ...]
    interactions: tuple[Interaction, ...]
    undefined: Undefined
    ledger: Ledger
