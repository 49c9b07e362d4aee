"""A whole bench: its cells, its audits, the rules over all of them, and all that as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tracefork_core.bench.audits import Audit
from tracefork_core.bench.checks import Check
from tracefork_core.bench.driving import Said
from tracefork_core.bench.quantiles import quantile
from tracefork_core.bench.rivals import RIVALS
from tracefork_core.bench.score import Cell, Scored
from tracefork_core.bench.standing import SHIPPED, Standing
from tracefork_core.bench.truth import Answer


@dataclass(frozen=True, slots=True)
class Report:
    """What a bench came to.

    Attributes:
        seed: the first seed; the others follow it.
        seeds: how many runs there are of each case at each size.
        cells: the cases, each at each size.
        standings: the engine beside the rules of others, by size.
        checks: the rules over all cells together.
        audits: what is looked at besides.
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
        """The rules that do not hold, in words."""
        cases = [f"{cell.case.name} n={cell.size}" for cell in self.cells if not cell.holds]
        pooled = [check.name for check in self.checks if not check.holds]
        return cases + pooled + [audit.name for audit in self.audits if not audit.holds]

    @property
    def misses(self) -> list[Scored]:
        """Every run whose full verdict or first suspect is wrong."""
        every = (one for cell in self.cells for one in cell.scored)
        return [one for one in every if not (one.right and one.found)]

    def document(self) -> dict[str, object]:
        """Return it as JSON-able values: the same for the same seed, whenever and wherever."""
        return {
            "seed": self.seed,
            "seeds": self.seeds,
            "holds": self.holds,
            "broken": self.broken,
            "cases": [_cell_document(cell) for cell in self.cells],
            "against": [asdict(standing) for standing in self.standings],
            "checks": [asdict(check) for check in self.checks],
            "audits": [asdict(audit) for audit in self.audits],
            "misses": [_miss_document(one) for one in self.misses],
        }


def _cell_document(cell: Cell) -> dict[str, object]:
    calls, suspect = [one.calls for one in cell.scored], [one.localising for one in cell.scored]
    forks = [one.forks for one in cell.scored]
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
        "intervals": sum(len(one.said.intervals) for one in cell.scored),
        "uncovered": sum(len(one.uncovered) for one in cell.scored),
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
        "said": _said_document(one.said),
        "right": [_answer_document(answer) for answer in instance.truth.answers],
        "suspect": one.said.decisive,
        "right_suspect": sorted(instance.truth.decisive, key=lambda unit: (unit is None, unit)),
    }


def _said_document(said: Said) -> dict[str, object]:
    return {"kind": said.kind, "units": list(said.units), "mediators": list(said.mediators)}


def _answer_document(answer: Answer) -> dict[str, object]:
    return {
        "kind": answer.kind,
        "units": sorted(answer.units),
        "mediators": sorted(answer.mediators),
    }
