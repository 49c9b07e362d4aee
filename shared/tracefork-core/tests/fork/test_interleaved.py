"""Recorded and live deliveries of one fork come in one order, and so they do on its branch."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, fork, record, replay
from tracefork_core.order.pace import Pace
from tracefork_core.order.policies import Forked
from tracefork_core.order.quiet import Gate
from tracefork_core.order.thread_rest import Rest
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.tape.rewrite import rewrite
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .agent import Moody


class Turning(Moody):
    """Answers "go on" to the first request, and `then` to later ones."""

    then = "go on"

    def __call__(self, request: ModelRequest) -> Reply:
        reply = super().__call__(request)
        if request.last_user_text == "how":
            return Reply("go on" if len(self.asked) < 4 else self.then)
        return reply


@pytest.fixture(params=["go on", "stop"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    model = Turning()
    model.then = request.param
    with ProviderServer(model) as server:
        yield f"{server.url}/v1/chat/completions"


def question(text: str, *, stream: bool = False) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream}


def said(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def read_on(url: str) -> list[str]:
    """Start to read a stream, ask whether to continue, and read the rest only if so."""
    with httpx2.Client(verify=False) as client:
        with client.stream("POST", url, json=question("story", stream=True)) as answer:
            lines = answer.iter_lines()
            came = [next(lines), said(client.post(url, json=question("how")))]
            if came[-1] == "go on":
                came.extend(lines)
        return [*came, said(client.post(url, json=question(f"and {came}")))]


def read_on_async(url: str) -> list[str]:
    async def agent() -> list[str]:
        async with httpx2.AsyncClient(verify=False) as client:
            async with client.stream("POST", url, json=question("story", stream=True)) as answer:
                lines = answer.aiter_lines()
                came = [await anext(lines), said(await client.post(url, json=question("how")))]
                if came[-1] == "go on":
                    came.extend([line async for line in lines])
            return [*came, said(await client.post(url, json=question(f"and {came}")))]

    return asyncio.run(agent())


def turns(tape: Tape, n: int) -> list[int]:
    return [first for first, _ in tape.exchanges[n].aside.turns]


@pytest.mark.parametrize("agent", [read_on, read_on_async])
def test_a_stream_continues_past_the_fork_point(
    tape: Path, url: str, agent: Callable[[str], list[str]]
) -> None:
    """Whether its rest is read after a live answer or never, the branch replays alike."""
    with record(tape):
        agent(url)
    with fork(tape, at=1) as branch:
        forked = agent(url)
    with replay(branch.path) as replayed:
        assert agent(url) == forked
    assert (replayed.digest, replayed.reordered) == (branch.digest, 0)
    with Tape.open(branch.path) as held:
        assert turns(held, 0)[0] < turns(held, 1)[0] < turns(held, 0)[-1]
    whole = tape.with_name("whole.tape")
    with Tape.open(branch.path) as held:
        rewrite(held, whole)
    with replay(whole) as replayed:
        assert agent(url) == forked
    assert (replayed.digest, replayed.reordered) == (branch.digest, 0)
    with fork(branch.path, at=2, to=tape.with_name("second.tape")) as second:
        forked_twice = agent(url)
    assert forked_twice[:-1] == forked[:-1]
    with replay(second.path) as replayed:
        assert agent(url) == forked_twice
    assert (replayed.digest, replayed.reordered) == (second.digest, 0)


def test_an_unread_stream_does_not_block_the_fork(tape: Path) -> None:
    """Its rest came before another answer in the recording, and is not read in the fork."""

    def script(request: ModelRequest) -> Reply:
        delay = 0.1 if request.last_user_text == "late" else 0
        return Reply(model(request).text, delay=delay)

    def agent(url: str) -> list[str]:
        async def run() -> list[str]:
            async with httpx2.AsyncClient(verify=False) as client:
                late = asyncio.create_task(client.post(url, json=question("late")))
                async with client.stream("POST", url, json=question("a", stream=True)) as answer:
                    lines = answer.aiter_lines()
                    came = [await anext(lines), said(await client.post(url, json=question("how")))]
                    if came[-1] == "go on":
                        came.extend([line async for line in lines])
                    return [*came, said(await late)]

        return asyncio.run(run())

    model = Turning()
    model.then = "stop"
    with ProviderServer(script) as server:
        url = f"{server.url}/v1/chat/completions"
        with record(tape):
            recorded = agent(url)
        with fork(tape, at=2) as branch:
            forked = agent(url)
    assert forked == [recorded[0], "stop", recorded[-1]]
    with replay(branch.path) as replayed:
        assert agent(url) == forked
    assert (replayed.digest, replayed.reordered) == (branch.digest, 0)


def test_a_timeout_before_the_fork_point_fires_as_recorded(tape: Path) -> None:
    """Sleeps before it take no time, so without their turns the timeout would come too late."""

    def agent(url: str) -> list[str]:
        came = []

        async def poll() -> None:
            while True:
                await asyncio.sleep(0.1)
                came.append("not yet")

        async def run() -> list[str]:
            try:
                await asyncio.wait_for(poll(), 0.35)
            except TimeoutError:
                came.append("too late")
            async with httpx2.AsyncClient(verify=False) as client:
                return [*came, said(await client.post(url, json=question(f"{came}")))]

        return asyncio.run(run())

    with ProviderServer(Moody()) as server:
        url = f"{server.url}/v1/chat/completions"
        with record(tape):
            recorded = agent(url)
        with fork(tape, at=0) as branch:
            forked = agent(url)
    assert forked == [*recorded[:-1], "answer 2"]
    with replay(branch.path):
        assert agent(url) == forked


def test_a_timeout_after_a_live_answer_replays_on_the_branch(tape: Path) -> None:
    """In the recording the answer came last; in the fork it comes at once."""

    def agent(url: str) -> list[str]:
        came = []

        async def within() -> None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.8)
            came.append("too late")

        async def asked() -> None:
            async with httpx2.AsyncClient(verify=False) as client:
                came.append(said(await client.post(url, json=question("a"))))

        async def run() -> None:
            await asyncio.gather(within(), asked())

        asyncio.run(run())
        return came

    delays = [1.6, 0]
    with ProviderServer(lambda _: Reply("answer", delay=delays.pop(0))) as server:
        url = f"{server.url}/v1/chat/completions"
        with record(tape):
            assert agent(url) == ["too late", "answer"]
        with fork(tape, at=0) as branch:
            assert agent(url) == ["answer", "too late"]
    with replay(branch.path):
        assert agent(url) == ["answer", "too late"]


TAKEN = ["recorded 0", "live", "recorded 1", "live", "recorded 2", "live"]


def one_line(threads: set[int]) -> tuple[Gate, Forked, Turnstile]:
    """Return the gate, the branch and the turnstile of a fork whose tape has three turns."""
    gate = Gate(Rest(threads))
    branch = Forked((turn, 0) for turn in range(3))
    return gate, branch, Turnstile(branch, gate, Pace(None))


@pytest.mark.parametrize("longer", ["live", "recorded"])
def test_tasks_get_live_and_recorded_deliveries_one_at_a_time(longer: str) -> None:
    """The next delivery waits until the effects of the last one are done, live or recorded."""
    gate, branch, turnstile = one_line(set())
    done: list[str] = []

    async def live(told: asyncio.Event, tell: asyncio.Event) -> None:
        for _ in range(3):
            await told.wait()
            told.clear()
            await gate.apass_on("live")
            branch.next_turn()
            tell.set()
            await much("live")

    async def recorded(told: asyncio.Event, tell: asyncio.Event) -> None:
        for turn in range(3):
            await told.wait()
            told.clear()
            await turnstile.await_turn(turn, 0, 0)
            tell.set()
            await much(f"recorded {turn}")

    async def much(name: str) -> None:
        for _ in range(9 if name.startswith(longer) else 1):
            await asyncio.sleep(0)
        done.append(name)

    async def both() -> None:
        here, there = asyncio.Event(), asyncio.Event()
        here.set()
        await asyncio.gather(recorded(here, there), live(there, here))

    asyncio.run(both())
    assert done == TAKEN
    assert [branch.place(turn) for turn in range(3)] == [0, 4, 6]


@pytest.mark.parametrize("longer", ["live", "recorded"])
def test_threads_get_live_and_recorded_deliveries_one_at_a_time(longer: str) -> None:
    """The next delivery waits until the other thread has nothing to do."""
    threads: set[int] = set()
    gate, branch, turnstile = one_line(threads)
    done: list[str] = []
    here, there = threading.Event(), threading.Event()

    def live() -> None:
        threads.add(threading.get_native_id())
        for _ in range(3):
            there.wait()
            there.clear()
            gate.pass_on("live")
            branch.next_turn()
            here.set()
            much("live")

    def recorded() -> None:
        threads.add(threading.get_native_id())
        for turn in range(3):
            here.wait()
            here.clear()
            turnstile.wait(turn, 0, 0)
            there.set()
            much(f"recorded {turn}")

    def much(name: str) -> None:
        until = time.monotonic() + (0.05 if name.startswith(longer) else 0)
        while time.monotonic() < until:
            pass
        done.append(name)

    both = [threading.Thread(target=target) for target in (live, recorded)]
    for thread in both:
        thread.start()
    here.set()
    for thread in both:
        thread.join()
    assert done == TAKEN
    assert [branch.place(turn) for turn in range(3)] == [0, 4, 6]
