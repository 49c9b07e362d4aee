"""A replay delivers answers in their recorded order, and no thread or task waits for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.order import thread_rest, turnstile
from tracefork_core.order.overtaking import Overtaking
from tracefork_core.order.pace import Pace
from tracefork_core.order.policies import Recorded
from tracefork_core.order.quiet import Gate
from tracefork_core.order.thread_rest import Rest
from tracefork_testkit import Hold, ModelRequest, ProviderServer, Reply


def asking(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


async def ask(client: httpx2.AsyncClient, url: str, text: str) -> str:
    answer = await client.post(f"{url}/v1/chat/completions", json=asking(text))
    return str(answer.json()["choices"][0]["message"]["content"])


async def streamed(client: httpx2.AsyncClient, url: str, text: str, joined: list[str]) -> None:
    body = asking(text, stream=True)
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        joined.extend([f"{text} {len(piece)}" async for piece in answer.aiter_raw()])


async def fan_in(url: str) -> str:
    """Join four answers in the order of their arrival, and send the result."""
    joined: list[str] = []

    async def branch(client: httpx2.AsyncClient, i: int) -> None:
        for k in range(3):
            answer = await ask(client, url, f"branch {i} {k}")
            # Two answers may come in one round of the loop; which is joined first hangs on this.
            for _ in range((7 * i + 3 * k) % 9):
                await asyncio.sleep(0)
            joined.append(f"{i}: {answer}")

    async with httpx2.AsyncClient(verify=False) as client:
        await asyncio.gather(*(branch(client, i) for i in range(4)))
        await asyncio.gather(*(streamed(client, url, f"stream {i}", joined) for i in range(3)))
        return await ask(client, url, "\n".join(joined))


@pytest.mark.parametrize("i", range(20))
def test_a_fan_in_replays_in_the_recorded_completion_order(
    tape: Path, provider: ProviderServer, i: int
) -> None:
    """The prompt that joins the answers is the recorded one."""
    with record(tape):
        first = asyncio.run(fan_in(provider.url))
    with replay(tape) as run:
        assert asyncio.run(fan_in(provider.url)) == first
    assert (run.digest, run.reordered) == (run.tape.digest, 0)


def test_the_slowest_call_of_a_recording_is_answered_last(tape: Path) -> None:
    """The first call may be the last to be answered, without any delay at replay."""
    hold = Hold(after_chunks=0)

    def script(request: ModelRequest) -> Reply:
        late = request.last_user_text == "late"
        return Reply(text=request.last_user_text, hold=hold if late else None)

    async def run(url: str) -> list[str]:
        done: list[str] = []

        async def branch(client: httpx2.AsyncClient, text: str) -> None:
            done.append(await ask(client, url, text))
            if len(done) == 2:
                hold.release()

        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.gather(*(branch(client, text) for text in ("late", "a", "b")))
        return done

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        first = asyncio.run(run(url))
    assert first[-1] == "late"
    with replay(tape):
        assert asyncio.run(run(url)) == first


def test_threads_are_answered_in_the_recorded_order(tape: Path) -> None:
    """Four threads wait for each other's answers."""
    holds = [Hold(after_chunks=0) for _ in range(4)]

    def script(request: ModelRequest) -> Reply:
        return Reply(text="x", hold=holds[int(request.last_user_text)])

    def run(url: str, *, live: bool) -> list[int]:
        done: list[int] = []

        def job(i: int) -> None:
            with httpx2.Client(verify=False) as client:
                client.post(f"{url}/v1/chat/completions", json=asking(str(i)))
            done.append(i)
            if live and i:
                holds[i - 1].release()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(job, range(4)))
        return done

    holds[3].release()
    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        first = run(url, live=True)
    assert first == [3, 2, 1, 0]
    for _ in range(5):
        with replay(tape) as replaying:
            run(url, live=False)
        assert (replaying.digest, replaying.reordered) == (replaying.tape.digest, 0)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.1)


def recorded_pair(tape: Path) -> tuple[str, Callable[[tuple[str, ...]], Any]]:
    """Record two tasks, the second of which is answered first."""
    hold = Hold(after_chunks=0)

    def script(request: ModelRequest) -> Reply:
        return Reply(text="x", hold=hold if request.last_user_text == "late" else None)

    async def run(url: str, texts: tuple[str, ...]) -> None:
        async def branch(client: httpx2.AsyncClient, text: str) -> None:
            await ask(client, url, text)
            hold.release()

        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.gather(*(branch(client, text) for text in texts))

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        asyncio.run(run(url, ("late", "soon")))
    return url, lambda texts: asyncio.run(run(url, texts))


@pytest.mark.usefixtures("_impatient")
def test_a_missing_call_ends_the_wait_of_other_tasks(tape: Path) -> None:
    """The divergence names the exchange that never came."""
    _, run = recorded_pair(tape)
    with replay(tape):
        run(("late", "soon"))
    with pytest.raises(DivergenceError, match="exchange 0 waited") as raised, replay(tape):
        run(("late",))
    assert (raised.value.divergence.kind, raised.value.divergence.n) == ("stalled", 1)
    assert "not asked for" in str(raised.value)


@pytest.mark.usefixtures("_impatient")
def test_a_smaller_thread_pool_does_not_stall_the_replay(tape: Path) -> None:
    """With fewer workers than recorded, order gives way and every call is answered."""

    def run(url: str, workers: int) -> set[bytes]:
        def job(i: int) -> bytes:
            with httpx2.Client(verify=False) as client:
                return client.get(f"{url}/bytes/{i}").content

        with ThreadPoolExecutor(workers) as pool:
            first = pool.submit(job, 0).result()
            return {first, *pool.map(job, range(6, 0, -1))}

    with ProviderServer() as provider, record(tape):
        url = provider.url
        everything = run(url, 6)
    with replay(tape) as replaying:
        assert run(url, 1) == everything
    assert replaying.digest == replaying.tape.digest


def compute(seconds: float) -> None:
    """Use a processor for that many seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_a_slower_machine_keeps_the_order(
    tape: Path, monkeypatch: pytest.MonkeyPatch, before: float, after: float
) -> None:
    """A replay waits for a thread that computes before its call or with its answer, as recorded."""
    hold = Hold(after_chunks=0)

    def script(request: ModelRequest) -> Reply:
        return Reply(text="x", hold=hold if request.last_user_text == "second" else None)

    def run(url: str, before: float, after: float) -> list[str]:
        done: list[str] = []

        def job(text: str) -> None:
            with httpx2.Client(verify=False) as client:
                compute(before if text == "first" else 0.0)
                client.post(f"{url}/v1/chat/completions", json=asking(text))
                compute(after if text == "first" else 0.0)
            done.append(text)
            hold.release()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(job, ("second", "first")))
        return done

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        assert run(url, 0.0, 0.0) == ["first", "second"]
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(thread_rest, "LIMIT_SECONDS", 0.2)
    # However busy this machine was: the second came soon after the first.
    monkeypatch.setattr(turnstile, "LIMIT_SECONDS", 60.0)
    with replay(tape) as replaying:
        assert run(url, before, after) == ["first", "second"]
    assert replaying.reordered == 0


def test_a_busy_thread_of_another_origin_delays_only_a_second(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is older than the run and never idle."""
    works, over = threading.Event(), threading.Event()

    def run() -> list[int]:
        def job(i: int) -> int:
            with httpx2.Client(verify=False) as client:
                return client.get(f"{provider.url}/bytes/{i}").status_code

        begun = job(0)
        if busy.is_alive():
            works.set()
        with ThreadPoolExecutor(3) as pool:
            return [begun, *pool.map(job, (1, 2, 3))]

    def never_rest() -> None:
        works.wait()
        while not over.is_set():
            compute(0.01)

    busy = threading.Thread(target=never_rest)
    with record(tape):
        first = run()
    busy.start()
    monkeypatch.setattr(turnstile, "STALL_SECONDS", 1000.0)
    monkeypatch.setattr(turnstile, "LIMIT_SECONDS", 60.0)
    try:
        with replay(tape):
            assert run() == first
    finally:
        over.set()
        busy.join()


class Others(Rest):
    """Other threads that take one more turn whenever a waiting thread loses patience."""

    alone = False

    def __init__(self, *things: Callable[[], None]) -> None:
        super().__init__(set())
        self.things = list(things)

    def is_stuck(self) -> bool:
        """They may go on at any time."""
        return False

    def wait(self, limit: float | None = None) -> None:
        """Take the next turn, where the others have all the time they need."""
        if limit == turnstile.STALL_SECONDS and self.things:
            self.things.pop(0)()


def test_a_thread_out_of_patience_waits_again_if_the_order_moved_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its turn may have come nearer in that moment."""
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.01)
    taken: list[int] = []

    def take(turn: int) -> None:
        order.wait(turn, owner=turn, patience=0)
        taken.append(turn)

    others = Others(lambda: take(0), lambda: take(1))
    policy = Recorded((turn, turn) for turn in range(3))
    order = turnstile.Turnstile(policy, Gate(others), Pace(None))
    take(2)
    assert (taken, order.skipped) == ([0, 1, 2], 0)


def test_a_task_waits_for_one_whose_thread_has_just_ended_its_job() -> None:
    """The thread is at rest by then, and the result of its job is what the loop does next."""
    taken: list[int] = []

    async def run() -> int:
        done = asyncio.Event()

        class Ending(Others):
            def is_stuck(self) -> bool:
                asyncio.get_running_loop().call_soon_threadsafe(done.set)
                return True

        policy = Recorded((turn, turn) for turn in range(2))
        order = turnstile.Turnstile(policy, Gate(Ending()), Pace(None))

        async def take(turn: int, after: asyncio.Event | None = None) -> None:
            if after is not None:
                await after.wait()
            await order.await_turn(turn, owner=turn, patience=0)
            taken.append(turn)

        await asyncio.gather(take(1), take(0, done))
        return order.skipped

    assert (asyncio.run(run()), taken) == (0, [0, 1])


def test_one_that_was_told_to_watch_hands_it_on_if_its_turn_comes_first() -> None:
    """Else nothing would look whether the run is stuck, and the rest would wait for ever."""
    policy = Recorded((turn, turn) for turn in range(4))
    line, watching = policy.line, Overtaking(policy, Others())
    woken: list[int] = []
    for turn in 1, 2, 3:
        line.stand(turn, turn).wake = partial(woken.append, turn)
    assert watching.watches(1, in_thread=False)
    for turn in 1, 3:  # The last is taken before the task that waits for it looks again.
        line.here[turn].wake = None
        line.pass_(turn)
        watching.hand_on_watch(turn)
    assert woken == [3, 2]
    assert watching.watches(2, in_thread=False)


@pytest.mark.usefixtures("_impatient")
def test_a_lock_around_the_client_does_not_stall_threads(tape: Path) -> None:
    """Another thread may hold the lock than in the recording: it goes first."""
    gates = [threading.Event(), threading.Event()]

    def run(url: str, order: tuple[int, int]) -> None:
        lock = threading.Lock()

        def job(i: int) -> None:
            with httpx2.Client(verify=False) as client:
                gates[i].wait()
                with lock:
                    gates[order[1]].set()
                    client.get(f"{url}/bytes/{i}")

        gates[0].clear()
        gates[1].clear()
        gates[order[0]].set()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(job, (0, 1)))

    with ProviderServer() as provider, record(tape):
        url = provider.url
        run(url, (0, 1))
    with replay(tape) as replaying:
        run(url, (1, 0))
    assert replaying.reordered > 0
    assert replaying.digest == replaying.tape.digest


@pytest.mark.usefixtures("_impatient")
def test_a_missing_call_of_a_thread_is_reported_at_the_end(tape: Path) -> None:
    """Threads continue without it, and the block names it when it ends."""

    def run(url: str, numbers: tuple[int, ...]) -> None:
        def job(i: int) -> None:
            with httpx2.Client(verify=False) as client:
                client.get(f"{url}/bytes/{i}")

        with ThreadPoolExecutor(1) as pool:
            list(pool.map(job, numbers))

    with ProviderServer() as provider, record(tape):
        url = provider.url
        run(url, (1, 2, 3))
    with pytest.raises(DivergenceError, match="#0") as raised, replay(tape):
        run(url, (2, 3))
    assert raised.value.divergence.kind == "leftover"


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_the_pace_of_a_stream_is_on_the_tape(tape: Path, chunks: int) -> None:
    """The delays of head, chunks and end; with one delivery, `took` is enough."""
    with ProviderServer() as provider, record(tape):
        httpx2.get(f"{provider.url}/chunked?n={chunks}")
    with Tape.open(tape) as opened:
        pace = opened.exchanges[0].aside.pace
    assert len(pace) == (chunks + 2 if chunks > 1 else 0)
