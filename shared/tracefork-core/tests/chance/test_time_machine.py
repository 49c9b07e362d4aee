"""The private names of time-machine that the clock stands on, each watched by itself."""

from __future__ import annotations

import inspect
import time
from importlib import import_module
from typing import Any

import pytest
import time_machine


class Fixed:
    """A traveller of our own, as `wall.take` puts one there."""

    def time_ns(self) -> int:
        return 1_234_000_000_000

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


def test_the_stack_of_travellers_is_there() -> None:
    """`traveller_stack` is a list, empty while nobody travels."""
    stack = getattr(time_machine, "traveller_stack", None)
    assert isinstance(stack, list), "time_machine.traveller_stack moved: see chance/system_clock.py"
    assert stack == [], "time_machine.traveller_stack holds more than those who travel now"


def test_travel_pushes_a_traveller_that_can_be_stopped_alone() -> None:
    """`travel(…).start()` returns what it pushed; its `_stop` lets the stack be."""
    journey = time_machine.travel(0)
    traveller = journey.start()
    try:
        assert time_machine.traveller_stack[-1:] == [traveller], (
            "travel().start() no longer pushes what it returns onto traveller_stack"
        )
        for name in ("_stop", "_start", "time_ns"):
            assert inspect.ismethod(getattr(traveller, name, None)), f"Traveller.{name} moved"
        traveller._stop()
        assert time_machine.traveller_stack[-1:] == [traveller], (
            "Traveller._stop takes it off traveller_stack now"
        )
    finally:
        journey.stop()


def test_the_top_of_the_stack_is_asked_for_the_time() -> None:
    """An object of ours in the place of theirs answers, by `time_ns` alone, and is taken off."""
    time_machine.travel(0).start()._stop()
    time_machine.traveller_stack[-1] = Fixed()  # type: ignore[call-overload]
    try:
        assert time.time() == 1234.0, "time-machine no longer asks traveller_stack[-1].time_ns()"
    finally:
        time_machine.travel(0).stop()
    assert time_machine.traveller_stack == [], "another journey's stop() no longer pops the stack"
    assert time.time() != 1234.0


@pytest.mark.parametrize("travelling", [False, True])
def test_the_original_clock_is_within_reach(*, travelling: bool) -> None:
    """`_time_machine.original_time_ns` is the real clock, on a journey too."""
    original = getattr(import_module("_time_machine"), "original_time_ns", None)
    assert original is not None, "_time_machine.original_time_ns moved: see chance/system_clock.py"
    real = time.clock_gettime_ns(time.CLOCK_REALTIME)
    with time_machine.travel(0) if travelling else time_machine.travel(real / 1e9):
        assert abs(original() - real) < 60e9, "_time_machine.original_time_ns travels now"


def test_a_journey_goes_on_by_a_name_that_can_be_replaced() -> None:
    """A traveller whose time passes asks `_time_machine.original_time_ns` by its name."""
    native: Any = import_module("_time_machine")
    original = native.original_time_ns
    with time_machine.travel(1_000) as traveller:
        native.original_time_ns = lambda: 5 * 10**9
        try:
            first = traveller.time_ns()
            native.original_time_ns = lambda: 7 * 10**9
            assert traveller.time_ns() - first == 2 * 10**9, (
                "Traveller.time_ns no longer asks _time_machine.original_time_ns"
            )
        finally:
            native.original_time_ns = original
