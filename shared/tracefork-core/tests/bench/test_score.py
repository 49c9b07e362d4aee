from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from tracefork_core.bench.bench import Report, bench
from tracefork_core.bench.cases import CASES
from tracefork_core.bench.driver import Asking, blame_engine
from tracefork_core.bench.scenarios import Answer
from tracefork_core.bench.score import accepted, at_most, quantile, score, scored_once

from .engines import Reach, knowing, lying, uniform


@pytest.mark.parametrize("case", CASES)
def test_a_true_claim_scores_in_full(case: str) -> None:
    """An engine that claims what was planted is right in everything."""
    instance = CASES[case].instance(CASES[case].size or 8, 2)
    found = scored_once(instance, knowing(instance))
    assert (found.right, found.found, found.accuses, found.uncovered) == (True, True, False, ())


@pytest.mark.parametrize("case", CASES)
def test_a_false_claim_scores_nothing(case: str) -> None:
    """The control: blaming every unit is wrong, accuses falsely, and covers nothing."""
    instance = CASES[case].instance(CASES[case].size or 8, 2)
    found = scored_once(instance, lying)
    assert (found.right, found.accuses) == (False, True)
    assert len(found.uncovered) == len(instance.recorded) + 1


def test_an_answer_must_match_kind_units_and_mediators() -> None:
    """Only optional mediators may be missing or present."""
    answer = Answer("single", frozenset({3}), frozenset({5}), optional=frozenset({6}))
    assert answer.is_given_by("single", (3,), (5,))
    assert answer.is_given_by("single", (3,), (5, 6))
    assert not answer.is_given_by("single", (3,))
    assert not answer.is_given_by("joint", (3,), (5,))
    assert not answer.is_given_by("single", (3, 4), (5,))
    assert not answer.is_given_by("single", (3,), (5, 7))


def test_one_live_call_breaks_the_rule_of_a_free_case() -> None:
    """It breaks it even if the verdict is right."""
    case = CASES["flaky"]

    def spending(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
        yield from lying(costs, random, reach)
        return (yield from knowing(case.instance(8, 0))(costs, random, reach))

    free = score(case, 8, [0], knowing(case.instance(8, 0)))
    paid = score(case, 8, [0], spending)
    assert (free.rights, free.holds, paid.rights, paid.holds) == (1, True, 1, False)


@pytest.mark.parametrize(
    ("hits", "of", "rule", "holds"),
    [
        (29, 30, 0.95, True),
        (28, 30, 0.95, False),
        (30, 30, 1.0, True),
        (29, 30, 1.0, False),
        (2, 3, 0.95, True),
        (1, 3, 0.95, False),
        (2, 3, 1.0, False),
    ],
)
def test_a_rule_needs_its_share_of_hits(hits: int, of: int, rule: float, *, holds: bool) -> None:
    """From 30 runs on the share must be met; with fewer, only a rare result breaks the rule."""
    assert accepted(hits, of, rule) == holds


def test_at_most_matches_an_enumeration_of_sequences() -> None:
    """It is the sum over all sequences with at most that many hits."""
    for hits in range(6):
        total = sum(
            0.3 ** sum(one) * 0.7 ** (5 - sum(one))
            for one in product((0, 1), repeat=5)
            if sum(one) <= hits
        )
        assert at_most(hits, 5, 0.3) == pytest.approx(total)


def test_at_most_is_accurate_for_thousands_of_runs() -> None:
    """It is exact too for probabilities of 0 and 1."""
    assert at_most(1619, 1620, 0.95) == pytest.approx(1 - 0.95**1620)
    assert at_most(810, 1620, 0.5) == pytest.approx(0.5, abs=0.02)
    assert at_most(1500, 1620, 0.95) < 1e-4
    assert [at_most(hits, 2000, 1.0) for hits in (1999, 2000)] == [0, 1]
    assert at_most(0, 2000, 0.0) == 1


def test_quantiles_are_observed_values() -> None:
    """The median of four is the second, the 90th percentile of ten is the ninth."""
    assert quantile([4, 1, 3, 2], 0.5) == 2
    assert quantile(list(range(1, 11)), 0.9) == 9
    assert quantile([7], 0.5) == 7


def cells(engine: str, seed: int = 0) -> Report:
    chosen = [CASES[name] for name in ("delayed", "hopeless")]
    return bench({"lying": lying, "uniform": uniform(12)}[engine], chosen, (8,), seed=seed, seeds=4)


def test_a_report_is_the_same_for_the_same_seed() -> None:
    """The JSON is byte-equal, and another seed gives another one."""
    one, other = (json.dumps(cells("uniform").document()) for _ in range(2))
    assert one == other
    assert one != json.dumps(cells("uniform", seed=1).document())


def test_a_report_lists_broken_rules_and_misses() -> None:
    """Each miss has the case and the seed that reproduce it."""
    report = cells("lying")
    assert not report.holds
    assert report.broken[:2] == ["delayed n=8", "hopeless n=8"]
    assert {"false accusations", "curves covered as a whole"} < set(report.broken)
    document = report.document()
    assert [(one["case"], one["seed"]) for one in document["misses"]] == [  # type: ignore[attr-defined]
        (case, seed) for case in ("delayed", "hopeless") for seed in range(4)
    ]


def test_uniform_forks_score_like_the_rule_of_the_largest_drop() -> None:
    """An engine with that rule takes as many calls and finds as many steps."""
    (standing,) = cells("uniform").standings
    drop = standing.rival("largest drop")
    assert (standing.size, standing.runs, standing.verdict) == (8, 4, 432)
    assert (drop.calls, standing.found) == (360, 1.0)
    assert standing.rival("flip rate").found < 1


@pytest.mark.no_cover  # Many forks through lines that others cover.
def test_blame_keeps_its_rules_on_a_few_runs_of_every_case() -> None:
    """On one run of each case it has at most one wrong verdict and no false accusation."""
    runs = [case.instance(case.size or 8, 11) for case in CASES.values()]
    scored = [scored_once(run, blame_engine) for run in runs]
    assert sum(not one.right for one in scored) <= 1
    assert not any(one.accuses for one in scored)
