"""Run a whole bench, apply its acceptance rules, and report the result as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from tracefork_core.bench.audits import Audit, audits
from tracefork_core.bench.cases import CASES, SIZES, Case
from tracefork_core.bench.driver import Claim, Engine
from tracefork_core.bench.rivals import LADDER, RIVALS
from tracefork_core.bench.scenarios import Answer
from tracefork_core.bench.score import (
    ENOUGH,
    SHIPPED,
    Cell,
    Scored,
    Standing,
    accepted,
    at_most,
    quantile,
    score,
    standings,
)

MOST_ACCUSATIONS = 0.03
COVERAGE = 0.95
RATIO, RATIO_SIZE = 5, 32
"""Blame must take 5 times fewer calls than the rule of the largest drop, at 32 steps."""
_RARELY = 0.05


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a rule over all runs of a bench.

    Attributes:
        name: what is measured.
        found: the measured value.
        wanted: its limit; a maximum for false accusations, else a minimum.
        holds: whether the rule holds.
    """

    name: str
    found: float
    wanted: float
    holds: bool


def checks(cells: Sequence[Cell], standings: Sequence[Standing]) -> Iterator[Check]:
    """Yield the results of the rules over all cells together."""
    scored = [result for cell in cells for result in cell.scored]
    finds = sum(result.found for result in scored)
    yield Check(
        "first suspect right", finds / len(scored), ENOUGH, accepted(finds, len(scored), ENOUGH)
    )
    fair = sum(not result.accuses for result in scored)
    yield Check(
        "false accusations",
        1 - fair / len(scored),
        MOST_ACCUSATIONS,
        accepted(fair, len(scored), 1 - MOST_ACCUSATIONS),
    )
    yield from _coverage(scored)
    for standing in standings:
        if standing.size == RATIO_SIZE:
            drop = standing.rival("largest drop")
            # If it never finds enough, its largest number of forks is a lower bound.
            calls = drop.enough or drop.calls * LADDER[-1] / SHIPPED
            ratio = calls / max(1, standing.suspect)
            yield Check(f"times fewer calls, n={standing.size}", ratio, RATIO, ratio >= RATIO)


def _coverage(scored: Sequence[Scored]) -> Iterator[Check]:
    """Yield the checks of the intervals, which each run reports where it stopped adaptively.

    The intervals of a curve must all hold at once in 95 % of the runs. The check fails if so few
    would be rare (below 5 %) for intervals that hold in exactly 95 %.
    """
    printed = sum(len(result.claim.intervals) for result in scored)
    if not printed:
        return
    share = 1 - sum(len(result.uncovered) for result in scored) / printed
    yield Check("intervals that cover", share, COVERAGE, share >= COVERAGE)
    kept = sum(
        not any(interval.name == "curve" for interval in result.uncovered) for result in scored
    )
    holds = at_most(kept, len(scored), COVERAGE) >= _RARELY
    yield Check("curves covered as a whole", kept / len(scored), COVERAGE, holds)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a bench.

    Attributes:
        seed: the first seed; the others follow it.
        seeds: number of runs of each case at each size.
        cells: the results of each case at each size.
        standings: the engine beside the rules of other tools, by size.
        checks: the rules over all cells together.
        audits: the results of the audits; empty unless all cases were run.
    """

    seed: int
    seeds: int
    cells: Sequence[Cell]
    standings: Sequence[Standing]
    checks: Sequence[Check]
    audits: Sequence[Audit]

    @property
    def holds(self) -> bool:
        """Whether every rule holds."""
        return not self.broken

    @property
    def broken(self) -> list[str]:
        """The names of the rules that do not hold."""
        cases = [f"{cell.case.name} n={cell.size}" for cell in self.cells if not cell.holds]
        pooled = [check.name for check in self.checks if not check.holds]
        return cases + pooled + [audit.name for audit in self.audits if not audit.holds]

    @property
    def misses(self) -> list[Scored]:
        """Every run whose full verdict or first suspect is wrong."""
        results = (result for cell in self.cells for result in cell.scored)
        return [result for result in results if not (result.right and result.found)]

    def document(self) -> dict[str, object]:
        """Return the report as JSON-able values, the same everywhere for the same seed."""
        return {
            "seed": self.seed,
            "seeds": self.seeds,
            "holds": self.holds,
            "broken": self.broken,
            "cases": [_cell_document(cell) for cell in self.cells],
            "against": [asdict(standing) for standing in self.standings],
            "checks": [asdict(check) for check in self.checks],
            "audits": [asdict(audit) for audit in self.audits],
            "misses": [_miss_document(miss) for miss in self.misses],
        }


def _cell_document(cell: Cell) -> dict[str, object]:
    calls = [result.calls for result in cell.scored]
    suspect = [result.localising for result in cell.scored]
    forks = [result.forks for result in cell.scored]
    return {
        "number": cell.case.number,
        "case": cell.case.name,
        "size": cell.size,
        "runs": len(cell.scored),
        "rule": cell.case.rule,
        "holds": cell.holds,
        "right": cell.rights,
        "first_suspect_right": cell.finds,
        "false_accusations": cell.accusations,
        "calls": _spread(calls),
        "calls_to_suspect": _spread(suspect),
        "forks": _spread(forks),
        "intervals": sum(len(result.claim.intervals) for result in cell.scored),
        "uncovered": sum(len(result.uncovered) for result in cell.scored),
        "rivals": {
            rule: {
                "forks_each": SHIPPED,
                "found": cell.found_by(rule, SHIPPED),
                "calls": quantile([pick.calls for pick in cell.rivals[rule, SHIPPED]], 0.5),
            }
            for rule in RIVALS
        },
    }


def _spread(values: Sequence[int]) -> dict[str, int]:
    return {"p50": quantile(values, 0.5), "p90": quantile(values, 0.9)}


def _miss_document(one: Scored) -> dict[str, object]:
    instance = one.instance
    return {
        "case": instance.case,
        "size": instance.size,
        "seed": instance.seed,
        "said": _claim_document(one.claim),
        "right": [_answer_document(answer) for answer in instance.truth.answers],
        "suspect": one.claim.decisive,
        "right_suspect": sorted(instance.truth.decisive, key=lambda unit: (unit is None, unit)),
    }


def _claim_document(claim: Claim) -> dict[str, object]:
    return {"kind": claim.kind, "units": list(claim.units), "mediators": list(claim.mediators)}


def _answer_document(answer: Answer) -> dict[str, object]:
    return {
        "kind": answer.kind,
        "units": sorted(answer.units),
        "mediators": sorted(answer.mediators),
    }


Tell = Callable[[str, int, int], None]
"""Called with what runs now, the number of finished runs, and the number of all runs."""


def silent(words: str, done: int, of: int) -> None:
    """Report nothing."""


def bench(
    engine: Engine,
    cases: Sequence[Case] = tuple(CASES.values()),
    sizes: tuple[int, ...] = SIZES,
    *,
    seed: int = 0,
    seeds: int = 30,
    tell: Tell = silent,
) -> Report:
    """Run an engine on recorded runs of each case at each size.

    The audits run only if all cases do.

    Args:
        engine: the engine to measure.
        cases: the cases to run.
        sizes: numbers of steps; a case with a size of its own runs at that one.
        seed: the first seed.
        seeds: number of runs of each case at each size, with ascending seeds.
        tell: called with the progress.
    """
    pairs = [(case, size) for case in cases for size in case.sizes(sizes)]
    every, cells = range(seed, seed + seeds), []
    of, done = len(pairs) * seeds, 0
    for case, size in pairs:

        def told(one: int, name: str = f"{case.name} n={size}") -> None:
            nonlocal done
            tell(f"{name} seed {one}", done, of)
            done += 1

        cells.append(score(case, size, every, engine, told))
    whole = {case.name for case in cases} == set(CASES)
    found: list[Audit] = []
    if whole:
        tell("audits", of, of)
        found = audits(engine, every)
    against = standings(cells)
    return Report(seed, seeds, cells, against, list(checks(cells, against)), found)
