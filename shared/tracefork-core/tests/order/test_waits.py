"""Sleeps and waits of an agent: a replay does not sleep, and keeps the recorded order."""

from __future__ import annotations

import asyncio
import contextlib
import math
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tracefork_core import Tape, UsageError, fork, record, replay
from tracefork_core.adapters import branch_lane, lane_here
from tracefork_testkit import Fault, Hold, ModelRequest, ProviderServer, Reply


def asking(url: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return {"url": f"{url}/v1/chat/completions", "json": body}


def ask(client: httpx2.Client, url: str, text: str) -> str:
    return str(client.post(**asking(url, text)).json()["choices"][0]["message"]["content"])


def test_a_replay_does_not_sleep(tape: Path, provider: ProviderServer) -> None:
    """Sleeps between requests took two seconds in the recording."""

    def run() -> float:
        began = time.monotonic()
        with httpx2.Client(verify=False) as client:
            for text in ("one", "two"):
                ask(client, provider.url, text)
                time.sleep(0.7)
        asyncio.run(asyncio.sleep(0.7))
        return time.monotonic() - began

    with record(tape):
        assert run() >= 2.1
    with replay(tape):
        assert run() < 0.7


def test_a_blocking_call_on_a_loop_does_not_block_waiting_tasks(tape: Path) -> None:
    """The blocking client runs on the loop on which tasks wait for their turns."""
    ended: list[list[str]] = []

    async def run(url: str) -> list[str]:
        await asyncio.to_thread(str, 1)  # From here on there is another thread to be waited for.
        came: list[str] = []

        async def read(client: httpx2.Client, text: str) -> None:
            for i in range(8):
                came.append(ask(client, url, f"{text} {i}"))
                await asyncio.sleep(0)

        async def beat() -> None:
            for _ in range(40):
                await asyncio.sleep(0.002)

        with httpx2.Client(verify=False) as client:
            await asyncio.gather(beat(), beat(), *(read(client, f"{i}") for i in range(3)))
        return came

    def recorded_and_replayed() -> None:
        with ProviderServer(chunk_delay=0.003) as provider, record(tape):
            url = provider.url
            ended.append(asyncio.run(run(url)))
        with replay(tape):
            ended.append(asyncio.run(run(url)))

    thread = threading.Thread(target=recorded_and_replayed, daemon=True)
    thread.start()
    thread.join(60)
    assert len(ended) == 2
    assert ended[0] == ended[1]


def test_a_replay_at_speed_one_takes_the_recorded_time(tape: Path) -> None:
    """`speed=1` keeps the pace of streams and sleeps; `speed=4` is four times as fast."""

    def run(url: str) -> tuple[float, float]:
        with httpx2.Client(verify=False) as client:
            began = time.monotonic()
            with client.stream("POST", **asking(url, "stream", stream=True)) as answer:
                pieces = [time.monotonic() for _ in answer.iter_raw()]
            time.sleep(0.1)
            return pieces[-1] - pieces[0], time.monotonic() - began

    with ProviderServer(chunk_delay=0.05) as provider, record(tape):
        url = provider.url
        recorded = run(url)
    took = {}
    for speed in (None, 1, 4):
        with replay(tape, speed=speed) as replaying:
            took[speed] = run(url)
        assert replaying.digest == replaying.tape.digest
    assert took[1][0] >= 0.8 * recorded[0]
    assert took[1][1] >= 0.8 * recorded[1]
    assert took[None][1] < 0.5 * recorded[1]
    assert took[4][1] < 0.6 * took[1][1]


@pytest.mark.parametrize("speed", [0, -1, math.inf, math.nan])
def test_an_invalid_speed_is_refused(tape: Path, speed: float) -> None:
    """Such a replay would stand still or fail in the middle, so it does not begin."""
    with record(tape):
        pass
    with pytest.raises(UsageError, match="a number above 0"), replay(tape, speed=speed):
        pytest.fail("it began")


def test_the_backoff_of_an_sdk_takes_no_time_at_replay(tape: Path) -> None:
    """It waits about half a second, with jitter. The replay makes the same retries."""

    def run(url: str) -> tuple[str, float]:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=3)
        with client:
            began = time.monotonic()
            answer = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}]
            )
            return str(answer.choices[0].message.content), time.monotonic() - began

    script: list[Reply | Fault] = [
        Fault(kind="status", status=500),
        Fault(kind="status", status=500),
        Reply(text="x"),
    ]
    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        said, took = run(url)
    with Tape.open(tape) as recorded:
        assert [exchange.status for exchange in recorded.exchanges] == [500, 500, 200]
    with replay(tape) as replaying:
        again, took_again = run(url)
    assert (again, replaying.digest) == (said, replaying.tape.digest)
    assert took > 0.8
    assert took_again < took / 2


def of_its_output(program: list[str]) -> str:
    return subprocess.check_output(program, text=True)


def of_its_pipe(program: list[str]) -> str:
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        return running.stdout.read()


@pytest.mark.parametrize("reads", [of_its_output, of_its_pipe])
def test_a_replay_waits_for_a_thread_whose_subprocess_computes(
    tape: Path, reads: Callable[[list[str]], str]
) -> None:
    """Such a thread is not at rest, so no answer overtakes it."""
    hold = Hold()

    def answer(request: ModelRequest) -> Reply:
        if request.last_user_text == "computed":
            hold.release()
            return Reply("x", delay=0.3)
        return Reply("y", hold=hold if request.last_user_text == "held" else None)

    def run(url: str) -> None:
        came: list[str] = []

        def compute() -> None:
            count = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo $i"
            came.append(reads(["sh", "-c", count]))
            ask(client, url, "computed")

        with httpx2.Client(verify=False) as client, ThreadPoolExecutor() as pool:
            ask(client, url, "first")
            job = pool.submit(compute)
            came.append(ask(client, url, "held"))
            job.result()
            ask(client, url, "".join(came))

    with ProviderServer(answer) as provider, record(tape):
        url = provider.url
        run(url)
    for _ in range(3):
        with replay(tape) as replaying:
            run(url)
        assert replaying.digest == replaying.tape.digest


def test_parallel_sleeps_on_one_lane_end_in_the_recorded_order(tape: Path) -> None:
    """A branch that runs again while its first run is active shares that run's lane."""

    async def run(url: str) -> str:
        origin, came = lane_here(), list[str]()

        async def nap(name: str, seconds: float) -> None:
            branch_lane(origin, "branch")
            await asyncio.sleep(seconds)
            came.append(name)

        naps = asyncio.gather(nap("first", 0.5), nap("second", 0.1), nap("third", 0.3))
        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.sleep(0.2)
            await client.post(**asking(url, " ".join(came)))
            await naps
            await client.post(**asking(url, " ".join(came)))
        return " ".join(came)

    with ProviderServer() as provider:
        with record(tape):
            assert asyncio.run(run(provider.url)) == "second third first"
        with replay(tape) as replaying:
            asyncio.run(run(provider.url))
        assert replaying.digest == replaying.tape.digest
        with fork(tape, at=0, replace="changed") as branch:
            assert asyncio.run(run(provider.url)) == "second third first"
    assert (branch.given, branch.live) == (1, 1)


def test_a_sleep_that_was_not_recorded_takes_its_time(tape: Path, provider: ProviderServer) -> None:
    """The tape does not know when it ends."""
    with record(tape), httpx2.Client(verify=False) as client:
        ask(client, provider.url, "hi")
    with replay(tape), httpx2.Client(verify=False) as client:
        ask(client, provider.url, "hi")
        began = time.monotonic()
        time.sleep(0.05)
        assert time.monotonic() - began >= 0.05


def test_a_polling_thread_does_not_slow_a_replay(tape: Path) -> None:
    """It polls for work and makes no request. A replay does not wait for its polls."""

    def run(url: str) -> float:
        stop = threading.Event()
        looks = []

        def look() -> None:
            while not stop.wait(0.03):
                looks.append("nothing to do")

        exporter = threading.Thread(target=look)
        exporter.start()
        with httpx2.Client(verify=False) as client:
            began = time.monotonic()
            ask(client, url, "take your time")
            took = time.monotonic() - began
        stop.set()
        exporter.join()
        return took

    with ProviderServer(lambda _: Reply(text="x", delay=0.5)) as provider, record(tape):
        url = provider.url
        assert run(url) >= 0.5
    with Tape.open(tape) as recorded:
        assert any(reads.source == "wait" for reads in recorded.chance.reads)
    with replay(tape):
        assert run(url) < 0.4


def test_the_tape_holds_how_each_sleep_and_timeout_ended(tape: Path) -> None:
    """For a sleep, that it was cut short; for timeouts at a call site, which one fired."""

    async def agent() -> None:
        for seconds in (0.01, 60):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await asyncio.sleep(seconds)

    with record(tape):
        asyncio.run(agent())
    with Tape.open(tape) as recorded:
        waits = {reads.source: reads.values for reads in recorded.chance.reads}
    assert (waits["sleep"], waits["timer"]) == ([0, -1], [2, 1])


def test_equal_requests_of_many_threads_get_their_own_answers(tape: Path) -> None:
    """The order in which threads ask changes from run to run, but each gets its own answer."""

    def run(url: str) -> dict[int, str]:
        answers = {}
        everybody = threading.Barrier(6)

        def work(i: int) -> None:
            everybody.wait()
            with httpx2.Client(verify=False) as client:
                answers[i] = ask(client, url, "same")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
        return answers

    with ProviderServer(nondeterministic=True) as provider, record(tape):
        url = provider.url
        first = run(url)
    assert len(set(first.values())) == 6
    for _ in range(5):
        with replay(tape):
            assert run(url) == first


def test_a_session_restores_sleeps_threads_pools_and_subprocesses(tape: Path) -> None:
    """Each attribute is the identical object again, also after an error."""

    def held() -> list[object]:
        return [
            time.sleep,
            asyncio.sleep,
            asyncio.BaseEventLoop.call_at,
            asyncio.BaseEventLoop.create_task,
            asyncio.BaseEventLoop.run_until_complete,
            asyncio.Timeout.reschedule,
            threading.Condition.wait,
            threading.Thread.start,
            ThreadPoolExecutor.submit,
            subprocess.Popen.communicate,
            subprocess.Popen.wait,
            asyncio.subprocess.Process.communicate,
            asyncio.subprocess.Process.wait,
        ]

    before = held()
    with record(tape):
        assert all(now is not then for now, then in zip(held(), before, strict=True))
    assert held() == before
    with pytest.raises(ZeroDivisionError), replay(tape):
        _ = 1 / 0
    assert held() == before
