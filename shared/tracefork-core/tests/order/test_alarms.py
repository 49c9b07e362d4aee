"""The alarm of a process fires by the real clock, during the same sleep as when recorded."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import Hold, ProviderServer, Reply


@contextmanager
def alarms_to(handler: Callable[[int, object], object]) -> Iterator[None]:
    """Call a function when the alarm fires."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def went_off() -> Iterator[list[int]]:
    """Return the list to which the signal handler appends its signal."""
    found: list[int] = []
    with alarms_to(lambda number, _: found.append(number)):
        yield found


def sleeping() -> None:
    time.sleep(0.4)


def sleeping_on_a_loop() -> None:
    asyncio.run(asyncio.sleep(0.4))


def sleeping_in_a_thread() -> None:
    thread = threading.Thread(target=sleeping)
    thread.start()
    thread.join()


def tell(url: str, text: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    with httpx2.Client(verify=False) as client:
        client.post(f"{url}/v1/chat/completions", json=body).raise_for_status()


@pytest.mark.parametrize("sleep", [sleeping, sleeping_on_a_loop, sleeping_in_a_thread])
def test_an_alarm_fires_during_the_same_sleep_at_replay(
    sleep: Callable[[], None], tape: Path, provider: ProviderServer, went_off: list[int]
) -> None:
    """That sleep takes its time, so the next request is the recorded one."""

    def run() -> None:
        went_off.clear()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        sleep()
        tell(provider.url, f"it went off {len(went_off)} times")

    with record(tape):
        run()
    assert len(went_off) == 1
    with replay(tape) as again:
        run()
    assert again.digest == again.tape.digest


def test_a_pending_alarm_does_not_make_a_replay_sleep(
    tape: Path, provider: ProviderServer, went_off: list[int]
) -> None:
    """An alarm far in the future may be the timeout of a test."""

    def run() -> float:
        signal.setitimer(signal.ITIMER_REAL, 60)
        began = time.monotonic()
        time.sleep(1)
        tell(provider.url, f"{went_off}")
        return time.monotonic() - began

    with record(tape):
        assert run() >= 1
    with replay(tape):
        assert run() < 1


def test_an_alarm_that_fired_during_a_request_is_late_at_replay(tape: Path) -> None:
    """The answer comes at once, so an agent that depends on the alarm diverges."""
    hold, late = Hold(), []

    def release(number: int, frame: object) -> None:
        late.append(number)
        hold.release()

    def run(url: str) -> None:
        late.clear()
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        tell(url, "one")
        tell(url, f"late: {late}")

    with alarms_to(release):
        with ProviderServer(lambda request: Reply("yes", hold=hold)) as provider, record(tape):
            url = provider.url
            run(url)
        with pytest.raises(DivergenceError, match="late: "), replay(tape):
            run(url)
