"""The cases of `tracefork validate`: what is planted, the expected verdict, and the actual one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tracefork_core.blaming.engine.result import Result
    from tracefork_core.session.interventions import Intervention


@dataclass(frozen=True, slots=True)
class Case:
    """One run for blame to explain.

    Attributes:
        name: unique name.
        control: which negative control it is; empty if only a fault is planted.
        fault: the class of what was planted.
        unit: the exchange that blame must name; None if it must name none.
        step: the name of that exchange, or of the placebo's.
        changes: the planted changes, by exchange.
        coin: the stage at which the model tosses a coin.
        fails: whether the run must fail.
    """

    name: str
    control: str = ""
    fault: str = ""
    unit: int | None = None
    step: str = ""
    changes: tuple[tuple[int, Intervention], ...] = ()
    coin: str | None = None
    fails: bool = False

    @property
    def file(self) -> str:
        """File name of its tape, without a suffix."""
        return re.sub(r"[^a-z0-9]+", "-", self.name)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict of blame on a case.

    Attributes:
        name: name of the case.
        holds: whether blame named exactly the planted exchange, or none if nothing was planted.
        control: which negative control it is.
        fault: the class of the planted fault.
        step: the name of the exchange.
        planted: the exchange that blame must name.
        verdict: the kind of verdict.
        reason: why, in words.
        named: the exchanges that blame named.
        mediators: those that only passed it on.
        certain: whether the verdict is proven.
        effect: how much keeping the first suspect raises the failure rate, to two digits.
        forks: number of forks run.
        live_calls: live exchanges in those forks.
        tries: runs until one ended as the case requires; the agent may notice and repair a planted
            fault, or err elsewhere too.
    """

    name: str
    holds: bool
    control: str = ""
    fault: str = ""
    step: str = ""
    planted: int | None = None
    verdict: str
    reason: str = ""
    named: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    certain: bool = False
    effect: float | None = None
    forks: int
    live_calls: int
    tries: int = 1

    @classmethod
    def of(cls, case: Case, result: Result, tries: int) -> Outcome:
        """Compare a verdict with the expected one."""
        verdict, decisive = result.verdict, result.decisive
        wanted = () if case.unit is None else (case.unit,)
        holds = verdict.units == wanted
        if case.control in ("clean", "placebo"):
            # There is nothing to blame, so blame must make no live call.
            holds = holds and verdict.kind == "passed" and not result.ledger.live_calls
        return cls(
            name=case.name,
            holds=holds,
            control=case.control,
            fault=case.fault,
            step=case.step,
            planted=case.unit,
            verdict=verdict.kind,
            reason=verdict.reason,
            named=verdict.units,
            mediators=verdict.mediators,
            certain=verdict.certain,
            effect=None if decisive is None else round(decisive.effect, 2),
            forks=result.ledger.forks,
            live_calls=result.ledger.live_calls,
            tries=tries,
        )


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A validation as stored for later comparison, without times and paths.

    Attributes:
        seed: the random seed.
        budget: budget of each blame; empty for none.
        found: planted faults found and planted, by class.
        outcomes: the outcome of every case.
    """

    seed: int
    budget: str
    found: dict[str, tuple[int, int]]
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], *, seed: int, budget: str) -> Document:
        """Collect outcomes."""
        found: dict[str, tuple[int, int]] = {}
        for one in outcomes:
            if not one.control:
                hits, of = found.get(one.fault, (0, 0))
                found[one.fault] = hits + one.holds, of + 1
        return cls(seed=seed, budget=budget, found=found, outcomes=tuple(outcomes))

    @property
    def holds(self) -> bool:
        """Whether blame found every planted fault and accused no other exchange."""
        return all(one.holds for one in self.outcomes)


def changed(before: Document, after: Document, *, whole: bool) -> list[str]:
    """Return one line for each case whose outcome changed.

    With `whole`, every case was run, so a missing case is reported too.
    """
    known = {one.name: one for one in before.outcomes}
    lines = []
    for one in after.outcomes:
        was = known.get(one.name)
        if was is None:
            lines.append(f"{one.name}: new")
        elif was != one:
            lines.append(f"{one.name}: {'; '.join(_differences(was, one))}")
    gone = known.keys() - {one.name for one in after.outcomes} if whole else set()
    return lines + [f"{name}: gone" for name in sorted(gone)]


def _differences(was: Outcome, now: Outcome) -> list[str]:
    pairs = ((name, getattr(was, name), getattr(now, name)) for name in now.__struct_fields__)
    return [f"{name} was {_words(a)}, is {_words(b)}" for name, a, b in pairs if a != b]


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
