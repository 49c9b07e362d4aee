"""Many jobs on a small pool replay at once, although they start in another order than recorded.

The order in which threads submit jobs is a race of the program, and so is which jobs a pool starts
with. At replay all threads of the pool may then hold jobs whose turn has not come, while the job
whose turn is due is queued behind them. The tests force that. They set the two times that a thread
or task waits in vain to longer than a test may take, so using one up fails the test.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, fork, record, replay
from tracefork_core.order import thread_rest, turnstile
from tracefork_testkit import ProviderServer

FORWARD, BACKWARD = range(12), range(11, -1, -1)
Jobs = Iterable[int]
Agent = Callable[[str, Jobs], dict[int, str]]

pytestmark = pytest.mark.skipif(
    not thread_rest._FUTEX,
    reason="this system does not tell what a thread waits for",
)


@pytest.fixture(autouse=True)
def _forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 100.0)
    monkeypatch.setattr(turnstile, "STALL_SECONDS", 1000.0)


def asking(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def ask(client: httpx2.Client, text: str) -> str:
    answer = client.post("/v1/chat/completions", json=asking(text))
    return str(answer.json()["choices"][0]["message"]["content"])


class Submitting:
    """Makes threads submit their jobs in a chosen order."""

    def __init__(self, order: Jobs) -> None:
        self._order = list(order)
        self._turn = threading.Condition()

    def wait_for(self, job: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._order[0] == job)

    def is_done(self) -> None:
        with self._turn:
            del self._order[0]
            self._turn.notify_all()


def jobs_of_threads(url: str, order: Jobs) -> dict[int, str]:
    """Twelve threads, each with a job of two calls on a pool of three."""
    results: dict[int, str] = {}
    submitting = Submitting(order)
    with httpx2.Client(verify=False, base_url=url) as client, ThreadPoolExecutor(3) as pool:

        def job(i: int) -> str:
            return ask(client, f"{i}, then {ask(client, str(i))}")

        def crew(i: int) -> None:
            submitting.wait_for(i)
            future = pool.submit(job, i)
            submitting.is_done()
            results[i] = future.result()

        crews = [threading.Thread(target=crew, args=(i,)) for i in range(12)]
        for thread in crews:
            thread.start()
        for thread in crews:
            thread.join()
    return results


def jobs_of_tasks(url: str, order: Jobs) -> dict[int, str]:
    """Twelve tasks, each with two calls in threads of the small default pool of their loop."""

    async def main(client: httpx2.Client) -> dict[int, str]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(3))
        results: dict[int, str] = {}
        ready = {i: asyncio.Event() for i in range(12)}

        async def crew(i: int) -> None:
            await ready[i].wait()
            first = await asyncio.to_thread(ask, client, f"{i}")
            results[i] = await asyncio.to_thread(ask, client, f"{i}, then {first}")

        crews = [asyncio.create_task(crew(i)) for i in range(12)]
        for i in order:
            ready[i].set()
            await asyncio.sleep(0)
        await asyncio.gather(*crews)
        return results

    with httpx2.Client(verify=False, base_url=url) as client:
        return asyncio.run(main(client))


def jobs_on_a_loop(url: str, order: Jobs) -> dict[int, str]:
    """Twelve jobs on a pool of three, each of which waits for two calls on a loop elsewhere."""
    loop = asyncio.new_event_loop()
    loop_thread = threading.Thread(target=loop.run_forever)
    loop_thread.start()
    client = httpx2.AsyncClient(verify=False, base_url=url)

    async def ask_there(text: str) -> str:
        answer = await client.post("/v1/chat/completions", json=asking(text))
        return str(answer.json()["choices"][0]["message"]["content"])

    def there(text: str) -> str:
        return asyncio.run_coroutine_threadsafe(ask_there(text), loop).result()

    submitting = Submitting(order)
    results: dict[int, str] = {}
    with ThreadPoolExecutor(3) as pool:

        def crew(i: int) -> None:
            submitting.wait_for(i)
            future = pool.submit(lambda: there(f"{i}, then {there(str(i))}"))
            submitting.is_done()
            results[i] = future.result()

        crews = [threading.Thread(target=crew, args=(i,)) for i in range(12)]
        for thread in crews:
            thread.start()
        for thread in crews:
            thread.join()
    asyncio.run_coroutine_threadsafe(client.aclose(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    loop_thread.join()
    loop.close()
    return results


@pytest.mark.parametrize("agent", [jobs_of_threads, jobs_of_tasks, jobs_on_a_loop])
def test_jobs_that_start_in_another_order_replay_without_waiting(
    agent: Agent, tape: Path, provider: ProviderServer
) -> None:
    """Every answer is the recorded one, and some turns count as overtaken."""
    with record(tape):
        recorded = agent(provider.url, FORWARD)
    with replay(tape) as replaying:
        assert agent(provider.url, BACKWARD) == recorded
    assert replaying.digest == replaying.tape.digest
    assert replaying.reordered > 0


@pytest.mark.parametrize("agent", [jobs_of_threads, jobs_of_tasks, jobs_on_a_loop])
def test_jobs_that_start_in_the_recorded_order_keep_it(
    agent: Agent, tape: Path, provider: ProviderServer
) -> None:
    """The control: no turn is overtaken without need."""
    with record(tape):
        recorded = agent(provider.url, FORWARD)
    with replay(tape) as replaying:
        assert agent(provider.url, FORWARD) == recorded
    assert (replaying.digest, replaying.reordered) == (replaying.tape.digest, 0)


def test_jobs_of_a_fork_that_start_in_another_order_do_not_wait(
    tape: Path, provider: ProviderServer
) -> None:
    """Before the fork point they are answered from the tape, in another order too."""
    with record(tape):
        jobs_of_threads(provider.url, FORWARD)
    with fork(tape, at=23) as branch:
        forked = jobs_of_threads(provider.url, BACKWARD)
    assert branch.replayed == 23
    with replay(branch.path) as replaying:
        assert jobs_of_threads(provider.url, FORWARD) == forked
    assert replaying.digest == branch.digest


def computing() -> None:
    until = time.thread_time() + 0.3
    while time.thread_time() < until:
        pass


def sleeping() -> None:
    time.sleep(0.3)


def waiting_for_a_program() -> None:
    import subprocess

    subprocess.run(["sleep", "0.3"], check=True)


@pytest.mark.parametrize("slow", [computing, sleeping, waiting_for_a_program])
def test_a_slow_thread_is_not_overtaken(
    slow: Callable[[], None], tape: Path, provider: ProviderServer
) -> None:
    """A replay waits for a thread that will make its request, though it was fast when recorded."""

    def run(before: Callable[[], None]) -> list[str]:
        ended: list[str] = []
        may_ask = threading.Event()

        def job(name: str) -> None:
            with httpx2.Client(verify=False, base_url=provider.url) as client:
                if name == "first":
                    before()
                else:
                    may_ask.wait()
                ask(client, name)
            ended.append(name)
            may_ask.set()

        threads = [threading.Thread(target=job, args=(name,)) for name in ("first", "second")]
        for thread in threads:
            thread.start()
        if before is not nothing:
            may_ask.set()
        for thread in threads:
            thread.join()
        return ended

    with record(tape):
        assert run(nothing) == ["first", "second"]
    with replay(tape) as replaying:
        assert run(slow) == ["first", "second"]
    assert replaying.reordered == 0


def nothing() -> None: ...


@pytest.mark.parametrize("traced", ["before us", "after us", "not at all"])
def test_a_tracer_around_jobs_changes_no_lane(
    traced: str, tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry wraps each job above our patch, and in the next session below it."""

    def trace() -> None:
        if traced != "not at all":
            monkeypatch.setattr(ThreadPoolExecutor, "submit", _traced(ThreadPoolExecutor.submit))

    def ask() -> str:
        return httpx2.get(f"{provider.url}/pages/a").text

    if traced == "before us":
        trace()
    with record(tape):
        if traced == "after us":
            trace()
        with ThreadPoolExecutor() as pool:
            pool.submit(partial(copy_context().run, ask)).result()
    with Tape.open(tape) as opened:
        assert [exchange.lane for exchange in opened.exchanges] == ["main/ask.1"]


def _traced(submit: Callable[..., Any]) -> Callable[..., Any]:
    """Do what OpenTelemetry's instrumentation of threads does."""

    def traced(self: Any, original_func: Callable[..., Any], *args: Any) -> Any:
        def wrapped_func(*args: Any) -> Any:
            return original_func(*args)

        wrapped_func.__module__ = "opentelemetry.instrumentation.threading"
        return submit(self, wrapped_func, *args)

    return traced
