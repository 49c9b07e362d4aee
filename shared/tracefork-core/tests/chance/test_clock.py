"""The wall clock of a replay is the recorded one, however it is read."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date, datetime
from pathlib import Path
from time import time as bound_early

import httpx2
import pytest
import time_machine

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit import ProviderServer

now_bound_early = datetime.now
A_YEAR = dt.timedelta(days=366)

READS: dict[str, Callable[[], object]] = {
    "datetime.now": lambda: datetime.now(),  # noqa: DTZ005, PLW0108
    "datetime.now(UTC)": lambda: datetime.now(dt.UTC),
    "datetime.now bound early": lambda: now_bound_early(dt.UTC),
    "datetime.fromtimestamp": lambda: dt.datetime.fromtimestamp(time.time(), dt.UTC),
    "date.today": lambda: date.today(),  # noqa: DTZ011, PLW0108
    "time.time": lambda: time.time(),  # noqa: PLW0108
    "time.time bound early": lambda: bound_early(),  # noqa: PLW0108
    "time.time_ns": lambda: time.time_ns(),  # noqa: PLW0108
    "strftime": lambda: time.strftime("%Y-%m-%d %H:%M:%S"),
    "gmtime": lambda: time.gmtime(),  # noqa: PLW0108
    "localtime": lambda: time.localtime(),  # noqa: PLW0108
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_reads_of_the_clock_replay(tape: Path, read: Callable[[], object]) -> None:
    """A year later, at another pace, each of three reads gives the recorded value."""
    with record(tape):
        first = [read() for _ in range(3)]
    with time_machine.travel(time.time() + A_YEAR.total_seconds()):
        assert read() != first[0]
        with replay(tape) as run:
            again = [read() for _ in range(3)]
        assert read() != first[0]
    assert again == first
    assert [type(value) for value in again] == [type(value) for value in first]
    assert run.clock_misses == 0


def test_a_prompt_with_the_time_in_it_replays(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The request is the recorded one to the byte, hours later."""

    def agent() -> str:
        prompt = {"model": "m", "now": datetime.now(dt.UTC).isoformat()}
        return http.post(f"{provider.url}/echo", json=prompt).text

    with record(tape):
        first = agent()
    with time_machine.travel(time.time() + A_YEAR.total_seconds()), replay(tape):
        assert agent() == first


@pytest.mark.parametrize("recorded", [False, True])
def test_without_a_clock_the_card_names_the_field(
    tape: Path, provider: ProviderServer, http: httpx2.Client, *, recorded: bool
) -> None:
    """Negative control: with clock=False in either run, the clock is real."""

    def agent() -> None:
        http.post(f"{provider.url}/echo", json={"asked": {"at": time.time_ns()}})

    with record(tape, clock=recorded):
        agent()
    with Tape.open(tape) as opened:
        assert bool(opened.draws) is recorded
    with pytest.raises(DivergenceError) as raised, replay(tape, clock=not recorded):
        agent()
    divergence = raised.value.divergence
    assert divergence.pointer == "/asked/at"
    assert divergence.recorded != divergence.actual


def test_a_busy_wait_ends(tape: Path) -> None:
    """At replay the clock advances, whether the wait is as long as recorded or longer."""

    def wait(seconds: float) -> float:
        begun = time.time()
        while (now := time.time()) - begun < seconds:
            pass
        return now - begun

    with record(tape):
        first = wait(0.005)
    with replay(tape):
        assert wait(0.005) == first
    with replay(tape) as longer:
        assert wait(first + 0.005) >= first + 0.005
    assert longer.clock_misses > 0


def test_timers_and_monotonic_clocks_are_real(tape: Path) -> None:
    """Sleep, timeouts, `monotonic` and `perf_counter` are real, in a paced replay, too."""

    async def agent() -> float:
        begun, counted = time.monotonic(), time.perf_counter()
        await asyncio.sleep(0.02)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), timeout=0.01)
        assert time.perf_counter() - counted >= 0.03
        assert time.monotonic() - begun >= 0.03
        return time.time()

    with record(tape):
        first = asyncio.run(agent())
    before = time.monotonic()
    with time_machine.travel(time.time() + A_YEAR.total_seconds()), replay(tape, speed=1):
        assert asyncio.run(agent()) == first
    assert 0 < time.monotonic() - before < 3600


def test_a_budget_of_seconds_replays_by_the_wall_clock(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A replay takes no time, and ends it where it ended; with `monotonic` it makes more calls."""

    def agent(clock: Callable[[], float]) -> None:
        end, n = clock() + 1, 0
        while clock() < end:
            http.post(f"{provider.url}/echo", json={"step": (n := n + 1)})
            time.sleep(0.4)

    with record(tape):
        agent(time.time)
    with replay(tape) as run:
        agent(time.time)
    assert run.clock_misses == 0
    with pytest.raises(DivergenceError), replay(tape):
        agent(time.monotonic)


def test_only_the_wall_clock_is_patched(tape: Path) -> None:
    """Monotonic clocks are the machine's own, while recording and at replay."""
    names = "monotonic monotonic_ns perf_counter perf_counter_ns process_time thread_time".split()
    own = [getattr(time, name) for name in names]

    def agent() -> float:
        assert [getattr(time, name) for name in names] == own
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        assert before <= time.monotonic_ns() <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        return time.time()

    with record(tape):
        first = agent()
    with replay(tape):
        assert agent() == first


def test_time_travel_of_the_program_is_recorded(tape: Path) -> None:
    """A program that travels with time-machine records that time, and still travels after."""
    with time_machine.travel(1_000_000_000, tick=False):
        with record(tape):
            assert time.time() == 1_000_000_000
        assert time.time() == 1_000_000_000
    with replay(tape):
        with time_machine.travel(2_000_000_000, tick=False):
            assert time.time() == 2_000_000_000
    assert time.time() > 1_500_000_000


@pytest.mark.parametrize("around", [False, True])
def test_time_travel_begun_inside_ticks_by_the_tape(tape: Path, *, around: bool) -> None:
    """The time that passes while travelling is the recorded one."""

    def reads() -> list[int]:
        with time_machine.travel(2_000_000_000):
            return [time.time_ns() for _ in range(3)]

    with time_machine.travel(1_000_000_000) if around else nullcontext():
        with record(tape):
            first = reads()
        with replay(tape) as run:
            assert reads() == first
        assert reads() != first
    assert first[0] == 2 * 10**18
    assert first[0] < first[1] < first[2] < first[0] + 60 * 10**9
    assert run.clock_misses == 0


def test_the_clock_continues_after_the_last_recorded_value(tape: Path) -> None:
    """An extra read is later than the last one, near the recorded time, and counts as a miss."""

    def reads(count: int) -> list[int]:
        return [time.time_ns() for _ in range(count)]

    with record(tape):
        first = reads(2)
    with time_machine.travel(time.time() + A_YEAR.total_seconds()), replay(tape) as run:
        again = reads(4)
    assert again[:2] == first
    assert first[1] < again[2] < again[3] < first[1] + 10**9
    assert run.clock_misses == 2
