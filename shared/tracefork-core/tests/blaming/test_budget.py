"""A budget in words, and what it allows."""

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
    """Dollars, calls, tokens, time, or several; and it is told as it was taken."""
    assert Budget.read(text) == budget
    assert budget.words == words


@pytest.mark.parametrize("text", ["", "5", "$", "-3 calls", "calls", "$5 30 calls", "5 days"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    """With what one looks like."""
    with pytest.raises(UsageError, match="a budget is"):
        Budget.read(text)


@pytest.mark.parametrize("budget", [Budget(calls=5), Budget(usd=0.55), Budget(tokens=50)])
def test_a_batch_that_cannot_be_paid_for_is_not_begun(budget: Budget) -> None:
    """Two units a fork, each for ten cents and ten tokens at most: two forks, and not three."""
    purse = Purse(budget, [0.1, 0.05], [10, 4])
    assert purse.limits([FRESH] * 2, []) == Allowed([3, 2], 0)
    assert purse.limits([FRESH] * 3, []) is None
    purse.add(Trial(0, FRESH, failed=True, calls=4, usd=0.4, tokens=40))
    assert purse.limits([FRESH], []) is None
    assert purse.limits([HELD], []) == Allowed([0], 0)


def test_an_agent_may_ask_more_often_than_it_did() -> None:
    """Ten times as often, and ten times more, as far as the budget goes."""
    free = Purse(Budget(), [0.1, 0.05], [10, 4])
    assert free.limits([FRESH], []) == Allowed([30])
    assert Purse(Budget(calls=12), [0.1, 0.05], [10, 4]).limits([FRESH], []) == Allowed([12], 0)


def test_when_time_is_up_nothing_live_begins() -> None:
    """What is held whole asks nothing, and may still be graded."""
    purse = Purse(Budget(seconds=0), [0.1, 0.05], [10, 4])
    assert purse.limits([FRESH], []) is None
    assert purse.limits([HELD], []) == Allowed([0])
    assert purse.limits([HELD], [], grades=1) is None
    assert Purse(Budget(seconds=3600), [0.1, 0.05], [10, 4]).limits([FRESH], []) is not None


def test_the_last_call_that_can_be_paid_for_is_made() -> None:
    """Three times ten cents are thirty, whatever a sum of fractions says."""
    purse = Purse(Budget(usd=0.3), [0.1], [0])
    for spent in range(3):
        assert purse.limits([Probe(frozenset())], []) == Allowed([3 - spent], 0)
        purse.add(Trial(spent, FRESH, failed=True, calls=1, usd=0.1))
    assert purse.limits([Probe(frozenset())], []) is None


def test_what_has_no_price_is_not_free() -> None:
    """A call of a model that no list knows counts as the dearest one, where there is a limit."""
    purse = Purse(Budget(usd=0.5), [0.1, 0.05], [0, 0])
    purse.add(Trial(0, FRESH, failed=True, calls=2, usd=None))
    assert purse.limits([FRESH], [Spent(1, 0, None)]) == Allowed([2], 0)
    assert purse.limits([FRESH], [Spent(2, 0, None)]) is None
    free = Purse(Budget(calls=9), [None, None], [0, 0])
    free.add(Trial(0, FRESH, failed=True, calls=2, usd=None))
    assert free.all_usd == 0


@pytest.mark.parametrize("budget", [Budget(calls=10), Budget(usd=0.7), Budget(tokens=70)])
def test_an_oracle_that_asks_is_paid_from_the_same_purse(budget: Budget) -> None:
    """Two calls of each fork, its grade, and what the oracle asks again; what it took before, too.

    A call of the oracle is a cent and a token here, and one of the agent ten: in calls, both are 1.
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


def test_tokens_need_answers_that_tell_them() -> None:
    """What is not told would be spent unseen, as by streams that were not asked to tell."""
    with pytest.raises(UsageError):
        Purse(Budget(tokens=100), [0.1, None], [10, None])
    assert Purse(Budget(calls=5), [0.1, None], [10, None]).limits([FRESH], []) is not None


def test_dollars_need_a_price_for_every_model() -> None:
    """What is not priced would be spent unseen."""
    with pytest.raises(UsageError, match="known price for every model"):
        Purse(Budget(usd=5), [0.1, None], [10, 10])
    assert Purse(Budget(calls=5), [0.1, None], [10, 10]).limits([FRESH], []) is not None
    unknown = Spending(Spent(), Spent(1, 100, None))
    with pytest.raises(UsageError, match="known price for the judge"):
        Purse(Budget(usd=5), [0.1, 0.1], [10, 10], unknown)
