"""Blame keeps to a rate of live calls per minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import UsageError
from tracefork_core.blaming import blame as blaming
from tracefork_core.blaming.trials.budget import Pacer

from . import drawing
from .drawn import SHORT, Drawing


class Clock:
    """A clock that only sleeping advances."""

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


def test_pacer_starts_as_many_forks_as_a_minute_allows(clock: Clock) -> None:
    """Later forks wait until the earlier calls are a minute old."""
    pace = pacer(clock, 10)
    assert pace.take([4, 4, 4]) == 2
    pace.made(8)
    clock.now += 20
    assert pace.take([4]) == 1
    assert clock.slept == [40.0]


def test_a_fork_above_the_rate_starts_alone(clock: Clock) -> None:
    """It waits for a minute without calls, since it would never fit."""
    pace = pacer(clock, 3)
    assert pace.take([7, 1]) == 1
    pace.made(7)
    assert pace.take([7]) == 1
    assert clock.slept == [60.0]


def test_without_a_rate_no_fork_waits(clock: Clock) -> None:
    """Forks without live calls never wait."""
    free = pacer(clock, None)
    free.made(1000)
    assert free.take([9, 9]) == 2
    pace = pacer(clock, 5)
    pace.made(5)
    assert pace.take([0, 0]) == 2
    assert clock.slept == []


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_must_be_above_zero(rate: float) -> None:
    """With any other rate blame would wait forever. A rate below one per minute is valid."""
    with pytest.raises(UsageError, match="above 0"):
        Pacer(rate)
    assert Pacer(0.5).take([1]) == 1


def test_a_blame_keeps_to_a_rate(
    clock: Clock, tape: Path, desk: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At two forks per minute, it waits a minute for each further two."""
    monkeypatch.setattr(blaming, "Pacer", lambda rate: pacer(clock, rate))
    rate = 2 * drawing.STEPS
    blaming.blame(tape, drawing.agent, drawing.good, settings=SHORT, rate=rate)
    assert rate < desk.live <= rate * (1 + len(clock.slept))
