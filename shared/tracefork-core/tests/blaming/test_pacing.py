"""A provider is asked no more often than it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import UsageError
from tracefork_core.blaming import blame as blaming
from tracefork_core.blaming.trials.budget import Pacer

from . import drawing
from .drawn import SHORT, Drawing


class Clock:
    """Time that passes where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pacer(clock: Clock, rate: float | None) -> Pacer:
    return Pacer(rate, lambda: clock.now, clock.sleep)


def test_as_many_forks_begin_as_a_minute_allows(clock: Clock) -> None:
    """Those behind wait until what was asked is a minute old."""
    pace = pacer(clock, 10)
    assert pace.take([4, 4, 4]) == 2
    pace.made(8)
    clock.now += 20
    assert pace.take([4]) == 1
    assert clock.slept == [40.0]


def test_a_fork_that_is_longer_than_a_minute_allows_begins_alone(clock: Clock) -> None:
    """It could never begin otherwise."""
    pace = pacer(clock, 3)
    assert pace.take([7, 1]) == 1
    pace.made(7)
    assert pace.take([7]) == 1
    assert clock.slept == [60.0]


def test_without_a_rate_nobody_waits(clock: Clock) -> None:
    """And what asks nothing live begins at once in any case."""
    free = pacer(clock, None)
    free.made(1000)
    assert free.take([9, 9]) == 2
    pace = pacer(clock, 5)
    pace.made(5)
    assert pace.take([0, 0]) == 2
    assert clock.slept == []


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    """It would wait for ever. Less than one a minute is a rate."""
    with pytest.raises(UsageError, match="above 0"):
        Pacer(rate)
    assert Pacer(0.5).take([1]) == 1


def test_a_blame_keeps_to_a_rate(
    clock: Clock, tape: Path, desk: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two forks a minute: it waits a minute for each two that it makes besides."""
    monkeypatch.setattr(blaming, "Pacer", lambda rate: pacer(clock, rate))
    rate = 2 * drawing.STEPS
    blaming.blame(tape, drawing.agent, drawing.good, settings=SHORT, rate=rate)
    assert rate < desk.live <= rate * (1 + len(clock.slept))
