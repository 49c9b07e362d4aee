"""What is planted by `tracefork validate`, what should be said of it, and what was."""

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
    """One run that blame is asked about.

    Attributes:
        name: unique.
        control: which negative control it is; empty where a fault is all that was planted.
        fault: the class of what was planted.
        unit: the exchange that has to be named; None where nobody may be.
        step: that exchange in words, or the one that a placebo is at.
        changes: what is planted, by exchange.
        coin: the stage at which the model tosses.
        fails: whether the run has to fail.
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
        """A name for its tape."""
        return re.sub(r"[^a-z0-9]+", "-", self.name)


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What blame said of a case.

    Attributes:
        name: of the case.
        holds: whether that is right: the planted exchange and no other, or nobody.
        control: which negative control it was.
        fault: the class of what was planted.
        step: the exchange in words.
        planted: the exchange that had to be named.
        verdict: the kind of the answer.
        reason: what is behind it, in words.
        named: the exchanges that were named.
        mediators: those that only passed it on.
        certain: whether the answer is proven.
        effect: by how much keeping the first suspect raises the risk, to two digits.
        forks: runs that were made.
        live_calls: exchanges that were live in them.
        tries: runs until one went as it should: where the agent saw a fault and mended it, or erred
            elsewhere as well, it was planted again.
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
        """Compare an answer with what it should be."""
        verdict, decisive = result.verdict, result.decisive
        wanted = () if case.unit is None else (case.unit,)
        holds = verdict.units == wanted
        if case.control in ("clean", "placebo"):
            # There is nothing to blame, and nothing to be spent on it.
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
    """A validation as it is kept, to be compared with: no times, no places.

    Attributes:
        seed: of everything that was drawn.
        budget: of each blame; empty for none.
        found: planted faults that were found, of how many, by class.
        outcomes: of every case.
    """

    seed: int
    budget: str
    found: dict[str, tuple[int, int]]
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], *, seed: int, budget: str) -> Document:
        """Put outcomes together."""
        found: dict[str, tuple[int, int]] = {}
        for one in outcomes:
            if not one.control:
                hits, of = found.get(one.fault, (0, 0))
                found[one.fault] = hits + one.holds, of + 1
        return cls(seed=seed, budget=budget, found=found, outcomes=tuple(outcomes))

    @property
    def holds(self) -> bool:
        """Whether every planted fault was found and nobody else was accused."""
        return all(one.holds for one in self.outcomes)


def changed(before: Document, after: Document, *, whole: bool) -> list[str]:
    """Return what is not as it was, of the cases that were run: one line each.

    Where all were run (`whole`), one that is no longer there is told as well.
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
        return ", ".join(map(str, value)) or "nobody"
    return str(value)
