"""Engines with known answers: one knows the truth, one lies, one forks uniformly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

from tracefork_core.bench.cases import Instance
from tracefork_core.bench.driver import Asking, Claim, Engine, Interval
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Trial

Reach = Callable[[str], None]


def knowing(instance: Instance) -> Engine:
    """Return an engine that gives the truth about one run, after two live forks."""
    answer = instance.truth.answers[0]
    decisive = min(instance.truth.decisive, key=lambda unit: (unit is None, unit))
    curve = instance.recorded.curve()

    def engine(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
        yield [Probe(frozenset(range(len(costs))))]
        if answer.kind != "not reproducible":
            reach("localise")
            yield [Probe(frozenset())]
            reach("repair")
            yield [Probe(frozenset({0}))]
        intervals = tuple(
            Interval("curve", at, risk - 0.01, risk + 0.01) for at, risk in enumerate(curve)
        )
        units, mediators = tuple(answer.units), tuple(answer.mediators)
        return Claim(answer.kind, units, mediators, decisive, intervals)

    return engine


def lying(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
    """Fork once, blame every unit, and report impossible intervals."""
    yield [Probe(frozenset())]
    units = tuple(range(len(costs)))
    intervals = tuple(Interval("curve", at, 2.0, 3.0) for at in range(len(costs) + 1))
    return Claim("joint", units, (), len(costs) - 1, intervals)


def uniform(each: int) -> Engine:
    """Return an engine that forks equally often after each prefix, and names the largest drop."""

    def engine(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
        rates = []
        try:
            for kept in range(len(costs) + 1):
                trials: list[Trial] = yield [Probe(frozenset(range(kept)))] * each
                rates.append(sum(trial.failed is True for trial in trials) / each)
        except Exhausted as exhausted:
            return Claim("undecided", decisive=len(exhausted.done))
        rises = [after - before for before, after in pairwise(rates)]
        step = rises.index(max(rises))
        return Claim("single", (step,), (), step)

    return engine
