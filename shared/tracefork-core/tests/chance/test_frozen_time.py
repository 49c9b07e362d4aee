"""Sessions work beside freezegun, which replaces the clocks of Python by name."""

from __future__ import annotations

import datetime as dt
import importlib.util
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import httpx2
import pytest
from freezegun import freeze_time

from tracefork_core import Tape, record, replay
from tracefork_core.patching import real_clock
from tracefork_testkit import ProviderServer

DAY = "2024-01-02 03:04:05"
Agent = Callable[[], None]


@pytest.fixture
def agent(provider: ProviderServer, http: httpx2.Client) -> Agent:
    """Send the time in the prompt, from the calling thread and from two others."""

    def ask() -> None:
        now = dt.datetime.now(dt.UTC).isoformat()
        http.post(f"{provider.url}/echo", json={"now": now, "at": time.time_ns()})

    def run() -> None:
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ask()

    return run


@pytest.mark.parametrize("tick", [False, True])
def test_a_freeze_inside_a_session_replays(tape: Path, agent: Agent, *, tick: bool) -> None:
    """Frozen, and frozen with a clock that ticks, which is the tape's."""

    def run() -> None:
        with freeze_time(DAY, tick=tick):
            agent()
        agent()

    with record(tape) as recording:
        run()
    with replay(tape) as replaying:
        run()
    assert (replaying.digest, replaying.clock_misses) == (recording.digest, 0)


def test_a_session_inside_a_freeze_replays(tape: Path, agent: Agent) -> None:
    """A frozen test records and replays its frozen time."""
    with freeze_time(DAY):
        with record(tape) as recording:
            agent()
        with replay(tape) as replaying:
            agent()
        assert time.time() == dt.datetime.fromisoformat(f"{DAY}+00:00").timestamp()
    assert replaying.digest == recording.digest
    with Tape.open(tape) as recorded:
        assert all(b'"now":"2024-01-02T' in one.request_body for one in recorded.exchanges)
    assert time.time() > 1_720_000_000


@pytest.mark.parametrize("frozen", [False, True])
def test_the_clock_of_a_session_cannot_be_frozen(*, frozen: bool) -> None:
    """Its waits end, whether it was loaded before the freeze or in it."""
    spec = importlib.util.spec_from_file_location("another_timer", real_clock.__file__)
    assert spec is not None
    assert spec.loader is not None
    another = importlib.util.module_from_spec(spec)
    before = time.monotonic_ns()
    with freeze_time(DAY) if frozen else nullcontext():
        spec.loader.exec_module(another)
    with freeze_time(DAY):
        for clock in (real_clock.monotonic_ns, another.monotonic_ns):
            assert before <= clock() < before + 60 * 10**9
