"""Budgets are parsed from text, and limit what forks may spend."""

from __future__ import annotations

import pytest

from tracefork_core import UsageError
from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.trials.budget import Allowed, Budget, Purse
from tracefork_core.blaming.trials.spending import Spending, Spent

FRESH, HELD = Probe(frozenset()), Probe(frozenset({0, 1}))


@pytest.mark.parametrize(
    ("text", "budget", "words"),
    [
        ("$5", Budget(usd=5), "$5"),
        ("0.50 usd", Budget(usd=0.5), "$0.5"),
        ("1 call", Budget(calls=1), "1 calls"),
        ("1.5k calls", Budget(calls=1500), "1500 calls"),
        ("1.5M tokens", Budget(tokens=1_500_000), "1500000 tokens"),
        ("10m", Budget(seconds=600), "600 s"),
        ("1.5 h", Budget(seconds=5400), "5400 s"),
        ("$2, 30 calls,90s", Budget(usd=2, calls=30, seconds=90), "$2, 30 calls, 90 s"),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget, words: str) -> None:
    """A budget has dollars, calls, tokens or time, or several; `words` shows it as it was read."""
    assert Budget.read(text) == budget
    assert budget.words == words


@pytest.mark.parametrize("text", ["", "5", "$", "-3 calls", "calls", "$5 30 calls", "5 days"])
def test_invalid_budgets_are_refused(text: str) -> None:
    """The error shows valid forms."""
    with pytest.raises(UsageError, match="a budget is"):
        Budget.read(text)


@pytest.mark.parametrize("budget", [Budget(calls=5), Budget(usd=0.55), Budget(tokens=50)])
def test_a_batch_that_the_budget_cannot_pay_for_does_not_start(budget: Budget) -> None:
    """At two units per fork, ten cents and ten tokens each, it pays for two forks, not three."""
    purse = Purse(budget, [0.1, 0.05], [10, 4])
    assert purse.limits([FRESH] * 2, []) == Allowed([3, 2], 0)
    assert purse.limits([FRESH] * 3, []) is None
    purse.add(Trial(0, FRESH, failed=True, calls=4, usd=0.4, tokens=40))
    assert purse.limits([FRESH], []) is None
    assert purse.limits([HELD], []) == Allowed([0], 0)


def test_a_fork_may_make_ten_times_the_recorded_calls() -> None:
    """It may make ten more on top, unless the budget has less left."""
    free = Purse(Budget(), [0.1, 0.05], [10, 4])
    assert free.limits([FRESH], []) == Allowed([30])
    assert Purse(Budget(calls=12), [0.1, 0.05], [10, 4]).limits([FRESH], []) == Allowed([12], 0)


def test_no_live_fork_starts_after_the_time_is_up() -> None:
    """A run with all units held makes no call, so it can still be graded."""
    purse = Purse(Budget(seconds=0), [0.1, 0.05], [10, 4])
    assert purse.limits([FRESH], []) is None
    assert purse.limits([HELD], []) == Allowed([0])
    assert purse.limits([HELD], [], grades=1) is None
    assert Purse(Budget(seconds=3600), [0.1, 0.05], [10, 4]).limits([FRESH], []) is not None


def test_the_whole_budget_can_be_spent() -> None:
    """Three calls at ten cents fit into thirty cents, despite rounding errors of floats."""
    purse = Purse(Budget(usd=0.3), [0.1], [0])
    for spent in range(3):
        assert purse.limits([Probe(frozenset())], []) == Allowed([3 - spent], 0)
        purse.add(Trial(spent, FRESH, failed=True, calls=1, usd=0.1))
    assert purse.limits([Probe(frozenset())], []) is None


def test_a_call_without_a_price_counts_as_the_most_expensive() -> None:
    """This holds under a dollar limit; without one, unpriced calls add nothing."""
    purse = Purse(Budget(usd=0.5), [0.1, 0.05], [0, 0])
    purse.add(Trial(0, FRESH, failed=True, calls=2, usd=None))
    assert purse.limits([FRESH], [Spent(1, 0, None)]) == Allowed([2], 0)
    assert purse.limits([FRESH], [Spent(2, 0, None)]) is None
    free = Purse(Budget(calls=9), [None, None], [0, 0])
    free.add(Trial(0, FRESH, failed=True, calls=2, usd=None))
    assert free.all_usd == 0


@pytest.mark.parametrize("budget", [Budget(calls=10), Budget(usd=0.7), Budget(tokens=70)])
def test_calls_of_the_oracle_come_from_the_same_budget(budget: Budget) -> None:
    """The budget pays for two calls per fork, its grade, retries of the oracle, and earlier grades.

    Here a call of the oracle costs a cent and a token, one of the agent ten; as calls, both are 1.
    """
    purse = Purse(budget, [0.1, 0.1], [10, 10], Spending(Spent(3), Spent(1, 1, 0.01)))
    alone = purse.limits([FRESH] * 3, [], grades=0)
    graded = purse.limits([FRESH] * 3, [], grades=3)
    assert alone is not None
    if budget.calls:
        assert (sum(alone.calls), alone.grading, graded) == (7, 3, None)
        assert purse.share == pytest.approx(0.3)
    else:
        assert sum(alone.calls) == 7
        assert graded == Allowed([2, 2, 2], 3 + 3 + 6)
    assert purse.limits([HELD], [], grades=99) is None


def test_a_token_budget_needs_answers_that_report_tokens() -> None:
    """Unreported tokens, as of streams without usage, would be spent unnoticed."""
    with pytest.raises(UsageError):
        Purse(Budget(tokens=100), [0.1, None], [10, None])
    assert Purse(Budget(calls=5), [0.1, None], [10, None]).limits([FRESH], []) is not None


def test_a_dollar_budget_needs_a_price_for_every_model() -> None:
    """Unpriced calls would be spent unnoticed."""
    with pytest.raises(UsageError, match="known price for every model"):
        Purse(Budget(usd=5), [0.1, None], [10, 10])
    assert Purse(Budget(calls=5), [0.1, None], [10, 10]).limits([FRESH], []) is not None
    unknown = Spending(Spent(), Spent(1, 100, None))
    with pytest.raises(UsageError, match="known price for the judge"):
        Purse(Budget(usd=5), [0.1, 0.1], [10, 10], unknown)
