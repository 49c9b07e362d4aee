"""The search for a race, on simulated agents whose outcome is a function of the order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracefork_core.run import racing
from tracefork_core.run.racing import Order, Outcome, search

Pair = tuple[int, int]
NUMBERS = st.integers(2, 6)


def at_once(count: int) -> set[frozenset[int]]:
    """Return all pairs: every exchange overlaps every other."""
    return {frozenset(pair) for pair in combinations(range(count), 2)}


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Limit the runs of the search for the smallest reordering."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(racing, "MOST_STEPS", steps)
        yield


@dataclass
class Agent:
    """Makes `count` calls at once; `breaks` decides from their order whether the outcome changes.

    `stops` is how much of an order is carried out before the change is seen.
    """

    count: int
    breaks: Callable[[list[int]], bool]
    stops: int = 99
    asked: list[Order] = field(default_factory=list)

    def attempt(self, order: Order) -> Outcome:
        self.asked.append(order)
        came = list(range(self.count))
        if isinstance(order, int):
            random.Random(order).shuffle(came)
        else:
            ranks = dict(zip(order, sorted(order), strict=True))
            came.sort(key=lambda n: ranks.get(n, n))
        if self.breaks(came):
            return Outcome("asks", "exchange 9", "then", "now", tuple(came[: self.stops]))
        return Outcome("same", completed=tuple(came))


def has(order: list[int], *pairs: Pair) -> bool:
    """Return whether an order has the first of each pair before the second."""
    return all(order.index(early) < order.index(late) for early, late in pairs)


@given(NUMBERS, st.integers(0, 30))
def test_an_agent_that_works_in_every_order_has_no_race(count: int, seeds: int) -> None:
    """Nothing is reported, and equal orders are counted once."""
    agent = Agent(count, lambda order: False)
    found = search(range(count), at_once(count), agent.attempt, range(seeds))
    assert found.smallest is None
    assert [group.outcome.kind for group in found.groups] == ["same"]
    orders = {agent.attempt(order).completed for order in [tuple(range(count)), *range(seeds)]}
    assert found.orders == found.groups[0].orders == len(orders)
    assert len(agent.asked) == 2 * (seeds + 1)


@given(NUMBERS, st.data())
def test_the_search_reports_only_the_pair_that_matters(count: int, data: st.DataObject) -> None:
    """One exchange before another changes the outcome; those between the two are reported too."""
    late, early = data.draw(st.sampled_from(sorted(combinations(range(count), 2))))
    agent = Agent(count, lambda order: has(order, (early, late)))
    found = search(range(count), at_once(count), agent.attempt, range(40))
    assert found.smallest is not None
    moved = sum(map(len, found.smallest.moved.values()))
    assert moved == early - late, "each exchange in between has to be passed by one of the two"
    assert set(found.smallest.moved) <= set(range(late + 1, early + 1))
    assert has(list(agent.attempt(found.smallest.order).completed), (early, late))


@given(st.integers(3, 6), st.data())
def test_a_reported_race_is_minimal_and_changes_the_outcome(
    count: int, data: st.DataObject
) -> None:
    """No adjacent inversion can be undone, the order reproduces the outcome, runs are limited."""
    pairs = st.sampled_from([(b, a) for a, b in combinations(range(count), 2)])
    matters = data.draw(st.lists(pairs, min_size=1, max_size=3))
    agent = Agent(count, lambda order: has(order, *matters), stops=data.draw(st.integers(1, 6)))
    whole = Agent(count, agent.breaks)
    with at_most(200):
        found = search(range(count), at_once(count), whole.attempt, range(60))
    failing = any(Agent(count, agent.breaks).attempt(seed).changed for seed in range(60))
    assert (found.smallest is not None) == failing
    assert len(whole.asked) <= 61 + 200
    if found.smallest is None:
        return
    again = whole.attempt(found.smallest.order)
    assert again == found.smallest.outcome
    came = list(again.completed)
    for i in range(count - 1):
        if came[i] > came[i + 1]:
            undone = [*came[:i], came[i + 1], came[i], *came[i + 2 :]]
            assert not whole.breaks(undone)


@given(st.integers(2, 6), st.integers(1, 6))
def test_an_order_cut_short_by_the_run_is_completed(count: int, stops: int) -> None:
    """If a changed run ends early, the rest is taken as recorded. The race is still reported."""
    agent = Agent(count, lambda order: order[0] != 0, stops=stops)
    found = search(range(count), at_once(count), agent.attempt, range(40))
    assert found.smallest is not None
    assert found.smallest.order == (1, 0)
    assert found.smallest.moved == {1: (0,)}


@given(st.integers(2, 5), st.integers(0, 8))
def test_no_order_is_tried_twice_and_the_budget_holds(count: int, most_steps: int) -> None:
    """With any budget, a reported order did change the outcome."""
    last_first = list(reversed(range(count)))
    agent = Agent(count, lambda order: order == last_first)
    with at_most(most_steps):
        found = search(range(count), at_once(count), agent.attempt, range(400))
    assert len(agent.asked) <= 401 + most_steps
    assert len(agent.asked) == len(set(agent.asked))
    if found.smallest is not None:
        assert agent.attempt(found.smallest.order).changed


def test_only_overlapping_exchanges_are_reordered() -> None:
    """A pair that was never in flight together is not swapped."""
    agent = Agent(4, lambda order: has(order, (3, 2)))
    pairs = {frozenset((2, 3))}
    search(range(4), pairs, agent.attempt, range(20))
    assert [order for order in agent.asked if not isinstance(order, int)] == [
        (0, 1, 2, 3),
        (0, 1, 3, 2),
    ]


def test_a_race_in_the_recorded_order_is_reported_at_once() -> None:
    """If the recorded order already changes the outcome, no seed is tried and nothing is moved."""
    agent = Agent(3, lambda order: True)
    found = search(range(3), at_once(3), agent.attempt, range(20))
    assert agent.asked == [(0, 1, 2)]
    assert found.smallest is not None
    assert (found.smallest.order, found.smallest.moved) == ((0, 1, 2), {})


def test_a_race_between_sleeps_is_reported_by_its_seed() -> None:
    """Sleeps have no number, so no list of exchanges reproduces their order. A seed does."""

    def attempt(order: Order) -> Outcome:
        woke_first = order == 7
        return Outcome("prints" if woke_first else "same", completed=(0, 1))

    found = search((0, 1), at_once(2), attempt, range(10))
    assert found.smallest is not None
    assert (found.smallest.order, found.smallest.moved) == (7, {})


def test_outcomes_are_grouped_by_place() -> None:
    """Outcomes at two places of requests are two groups, each with its first order."""

    def attempt(order: Order) -> Outcome:
        if not isinstance(order, int) or order == 0:
            return Outcome("same", completed=(0, 1, 2))
        place = "exchange 4 /a" if order % 2 else "exchange 4 /b"
        return Outcome("asks", place, "x", f"y{order}", (2, 1))

    found = search(range(3), at_once(3), attempt, range(6))
    told = [(group.outcome.where, group.order, group.orders) for group in found.groups]
    assert told == [("", (0, 1, 2), 1), ("exchange 4 /a", 1, 3), ("exchange 4 /b", 2, 2)]
    assert found.orders == 6
