"""Each private name of time-machine that the clock uses has a test."""

from __future__ import annotations

import inspect
import time
from importlib import import_module
from typing import Any

import pytest
import time_machine


class Fixed:
    """A traveller of ours, as `system_clock.take` installs one."""

    def time_ns(self) -> int:
        return 1_234_000_000_000

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


def test_traveller_stack_exists() -> None:
    """A list, empty while the program does not travel."""
    stack = getattr(time_machine, "traveller_stack", None)
    assert isinstance(stack, list), "time_machine.traveller_stack moved: see chance/system_clock.py"
    assert stack == [], "time_machine.traveller_stack holds more than those who travel now"


def test_stop_of_a_traveller_leaves_the_stack_alone() -> None:
    """`travel(…).start()` returns what it pushed."""
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


def test_the_top_of_the_stack_answers_the_clock() -> None:
    """An object of ours, with `time_ns` alone, and it can be removed."""
    time_machine.travel(0).start()._stop()
    time_machine.traveller_stack[-1] = Fixed()  # type: ignore[call-overload]
    try:
        assert time.time() == 1234.0, "time-machine no longer asks traveller_stack[-1].time_ns()"
    finally:
        time_machine.travel(0).stop()
    assert time_machine.traveller_stack == [], "another journey's stop() no longer pops the stack"
    assert time.time() != 1234.0


@pytest.mark.parametrize("travelling", [False, True])
def test_original_time_ns_is_the_real_clock(*, travelling: bool) -> None:
    """While travelling, too."""
    original = getattr(import_module("_time_machine"), "original_time_ns", None)
    assert original is not None, "_time_machine.original_time_ns moved: see chance/system_clock.py"
    real = time.clock_gettime_ns(time.CLOCK_REALTIME)
    with time_machine.travel(0) if travelling else time_machine.travel(real / 1e9):
        assert abs(original() - real) < 60e9, "_time_machine.original_time_ns travels now"


def test_travelled_time_ticks_by_a_replaceable_name() -> None:
    """A ticking traveller looks `_time_machine.original_time_ns` up by name."""
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
