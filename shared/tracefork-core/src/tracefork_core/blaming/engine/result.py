"""The result of a blame, as plain records that are written as JSON unchanged."""

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
"""The kinds of verdict.

- single: one unit made the run fail.
- joint: several units were needed together.
- over-determined: several units or sets, each of which was enough.
- preempted: one unit did, but another would have failed the run without it.
- diffuse: no single unit.
- fails anyway: no unit; the task fails from the start as well.
- not reproducible: no unit; the recorded failure was chance.
- inert: unknown, since drawing again changes no response.
- passed: no unit, since the recorded run is good. `blame` decides this, not the engine.
- undecided: unknown.
"""

Interval = tuple[float, float]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a blame: its kind and the units it names.

    Attributes:
        kind: the kind of answer.
        units: the named units; empty for kinds that name none.
        mediators: units that only passed the failure on.
        sets: the named units by which sets would have been enough: one set, or alternatives.
        responsibility: of each named unit: 1 / the number of units to repair (Chockler & Halpern
            2004).
        certain: whether every named unit is proven to make a difference; else it is the likeliest.
        reason: the reason for the kind, in words.
    """

    kind: Kind
    units: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    responsibility: float = 0.0
    certain: bool = False
    reason: str = ""


class Decisive(msgspec.Struct, frozen=True, kw_only=True):
    """The unit that most likely made the run fail.

    Attributes:
        unit: the unit.
        probability: that it is the decisive one, under the change-point model.
        effect: difference in failure rate, -1 to 1, between runs that keep it and runs that decide
            it again.
        interval: of the effect, simultaneous over positions, valid at any time.
        evalue: e-value against "no effect".
        kept: failure rate of runs that keep it; None without such runs.
        redecided: failure rate of runs that decide it again; None without such runs.
        corrected: the effect without the known errors of the oracle.
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
    """The curve at one position: everything before a unit is kept, it and all after it are live.

    Attributes:
        position: number of units kept; with groups, whole groups are kept in their order.
        unit: the first live unit; None if all are kept.
        forks: number of runs with an outcome.
        failures: number of those that failed.
        undefined: number of runs without an outcome.
        rate: failures divided by forks; None without forks.
        interval: of the rate, simultaneous over positions, valid at any time, whatever the outcomes
            of the runs without one would have been.
        believed: posterior mean of the risk here, under the change-point model.
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
    """The evidence about one unit.

    Attributes:
        unit: the unit.
        chance: probability that it is the decisive one.
        gain: how much it raised the risk for good, as estimated; gains of a group add up.
        rescue: share of good runs among those live from here on; None if none was tried.
        flips: number of good runs among `redrawn`.
        redrawn: number of runs in which it gave another answer, alone or with what follows it live.
        flip_interval: Wilson interval of flips / redrawn; valid only for a number fixed in advance.
        repeated: how many times it gave the recorded answer again.
        drawn: how many times it was drawn again in its recorded context.
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
    """The sums of chance and gain over the units of a group."""

    units: tuple[int, ...]
    chance: float
    gain: float


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A failure rate, with an interval that is valid at any time."""

    forks: int
    failures: int
    undefined: int
    rate: float | None
    interval: Interval


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a negative control.

    Attributes:
        name: replay, placebo, null step or drift.
        passed: whether the result is as it should be.
        forks: number of runs it is based on.
        says: the result in words.
        unit: the unit that was tried, if it was one.
        interval: of the difference that should be zero.
        evalue: e-value against "nothing changed".
    """

    name: str
    passed: bool
    forks: int
    says: str
    unit: int | None = None
    interval: Interval | None = None
    evalue: float | None = None


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a repair that was tried.

    Attributes:
        unit: the unit that was given another response.
        trial: the trial that the response is from.
        alone: whether the run is then good with everything else exactly as recorded.
        held: failure rate with everything else as recorded.
        live: failure rate with everything before it as recorded and everything after it live.
    """

    unit: int
    trial: int
    alone: bool
    held: Rate
    live: Rate


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A named unit's share of the blame: its Shapley value (Shapley 1953)."""

    unit: int
    share: float


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """How two units interact: above 0 each needs the other, below 0 either one is enough."""

    units: tuple[int, int]
    value: float


class Undefined(msgspec.Struct, frozen=True, kw_only=True):
    """The number of runs without an outcome, of all runs, by reason."""

    forks: int
    of: int
    reasons: dict[str, int]


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What a blame cost. `usd` is None if a price was not known."""

    forks: int
    live_calls: int
    tokens: int
    usd: float | None
    seconds: float
    purposes: dict[str, int]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a blame. `credible` contains None if there may be no decisive unit."""

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
