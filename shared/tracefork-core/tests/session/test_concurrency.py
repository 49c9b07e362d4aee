"""Concurrent calls find their own answers, on lanes that have the same names in every run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.exchange.current import current_session
from tracefork_core.exchange.lane import current_lane
from tracefork_testkit import ProviderServer

Run = Callable[[str], Any]


@pytest.fixture
def moody() -> Iterator[ProviderServer]:
    """Serve a different answer each time, so that only the lane tells equal requests apart."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


def asking(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def text_of(answer: httpx2.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


async def ask(client: httpx2.AsyncClient, url: str, text: str) -> str:
    return text_of(await client.post(f"{url}/v1/chat/completions", json=asking(text)))


def ask_sync(client: httpx2.Client, url: str, text: str) -> str:
    return text_of(client.post(f"{url}/v1/chat/completions", json=asking(text)))


def gather_of_equal_requests(url: str) -> Any:
    async def branch(client: httpx2.AsyncClient) -> list[str]:
        return [await ask(client, url, "same"), await ask(client, url, "same")]

    async def run() -> Any:
        async with httpx2.AsyncClient(verify=False) as client:
            return await asyncio.gather(*(branch(client) for _ in range(5)))

    return asyncio.run(run())


def nested_fan_out(url: str) -> Any:
    async def leaf(client: httpx2.AsyncClient, text: str) -> str:
        return await ask(client, url, text)

    async def branch(client: httpx2.AsyncClient, i: int) -> list[str]:
        first = await ask(client, url, "plan")
        async with asyncio.TaskGroup() as group:
            leaves = [group.create_task(leaf(client, f"leaf {j}")) for j in range(3)]
        return [first, *(task.result() for task in leaves), await ask(client, url, f"sum {i}")]

    async def run() -> Any:
        async with httpx2.AsyncClient(verify=False) as client:
            return await asyncio.gather(*(branch(client, i) for i in range(3)))

    return asyncio.run(run())


def threads_with_context(url: str) -> Any:
    with httpx2.Client(verify=False) as client, ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(copy_context().run, ask_sync, client, url, "same") for _ in range(8)]
        return [job.result() for job in jobs]


def jobs_of_a_pool(url: str) -> Any:
    with httpx2.Client(verify=False) as client, ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: ask_sync(client, url, "same"), range(8)))


def threads(url: str) -> Any:
    answers: dict[int, str] = {}

    def work(client: httpx2.Client, i: int) -> None:
        answers[i] = ask_sync(client, url, "same")

    with httpx2.Client(verify=False) as client:
        workers = [threading.Thread(target=work, args=(client, i)) for i in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return answers


def to_thread(url: str) -> Any:
    async def run() -> Any:
        with httpx2.Client(verify=False) as client:
            jobs = (asyncio.to_thread(ask_sync, client, url, "same") for _ in range(4))
            return await asyncio.gather(*jobs)

    return asyncio.run(run())


def a_sync_client_inside_a_coroutine(url: str) -> Any:
    async def branch(client: httpx2.Client, i: int) -> list[str]:
        first = ask_sync(client, url, f"first {i}")
        await asyncio.sleep(0)
        return [first, ask_sync(client, url, f"then {i} {first}")]

    async def run() -> Any:
        with httpx2.Client(verify=False) as client:
            return await asyncio.gather(*(branch(client, i) for i in range(3)))

    return asyncio.run(run())


def streams_interleaved_in_one_task(url: str) -> Any:
    with httpx2.Client(verify=False) as client:
        seen = []
        with (
            client.stream("GET", f"{url}/chunked?n=5") as one,
            client.stream("GET", f"{url}/chunked?n=5&x=2") as two,
        ):
            first, second = one.iter_raw(), two.iter_raw()
            for _ in range(2):
                seen += [next(first), next(second)]
            seen += [*second, *first]
        return seen


RUNS = [
    gather_of_equal_requests,
    nested_fan_out,
    threads_with_context,
    jobs_of_a_pool,
    threads,
    to_thread,
    a_sync_client_inside_a_coroutine,
    streams_interleaved_in_one_task,
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_a_concurrent_run_replays_equal(tape: Path, moody: ProviderServer, run: Run) -> None:
    """Each task and thread gets its own answer, five times over, and the digest is the tape's."""
    with record(tape):
        first = run(moody.url)
    for _ in range(5):
        with replay(tape) as replaying:
            assert run(moody.url) == first
        assert replaying.digest == replaying.tape.digest


def test_two_live_runs_differ(moody: ProviderServer) -> None:
    """The negative control."""
    assert gather_of_equal_requests(moody.url) != gather_of_equal_requests(moody.url)


@pytest.mark.parametrize(
    "run", [gather_of_equal_requests, nested_fan_out], ids=lambda run: run.__name__
)
def test_lanes_have_the_same_names_in_two_runs(tape: Path, run: Run) -> None:
    """A lane is a spawn path, so two recordings of one agent agree on it."""
    lanes = []
    for _ in range(2):
        with ProviderServer() as server, record(tape, overwrite=True):
            run(server.url)
        with Tape.open(tape) as recorded:
            lanes.append(sorted((e.lane, e.request.body) for e in recorded.exchanges))
    assert lanes[0] == lanes[1]


def test_lanes_follow_the_tasks(tape: Path, provider: ProviderServer) -> None:
    """`main/branch.2` is the second `branch` of main, `/leaf.1` the first task of that."""
    with record(tape):
        nested_fan_out(provider.url)
    with Tape.open(tape) as recorded:
        names = {exchange.lane for exchange in recorded.exchanges}
    assert names == {
        f"main/branch.{branch}{leaf}"
        for branch in (1, 2, 3)
        for leaf in ("", "/leaf.1", "/leaf.2", "/leaf.3")
    }


def test_an_asyncio_runner_gets_its_lanes_in_each_session(
    tape: Path, moody: ProviderServer
) -> None:
    """It runs everything in one context, which carries no lane or that of an earlier session."""

    async def ask_at_once() -> list[str]:
        async with httpx2.AsyncClient(verify=False) as client:
            url = f"{moody.url}/v1/chat/completions"
            body = {"model": "m", "messages": [{"role": "user", "content": "the same"}]}
            asked = [client.post(url, json=body) for _ in range(4)]
            return [answer.text for answer in await asyncio.gather(*asked)]

    lanes: list[set[str]] = []
    with asyncio.Runner() as runner:
        for _ in range(2):
            with record(tape, overwrite=bool(lanes)):
                runner.run(ask_at_once())
            with Tape.open(tape) as written:
                lanes.append({exchange.lane for exchange in written.exchanges})
    assert lanes[0] == lanes[1] == {f"main/post.{n}" for n in range(1, 5)}


def test_a_job_in_a_copied_context_gets_its_own_lane(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Frameworks copy the context for each job: lanes are numbered in the order of submission."""
    gates = [threading.Event() for _ in range(3)]
    gates[-1].set()

    def ask(n: int) -> None:
        gates[n].wait()
        http.get(f"{provider.url}/bytes/{n}")
        gates[n - 1].set()

    with record(tape), ThreadPoolExecutor(3) as pool:
        contexts = [copy_context() for _ in gates]
        list(pool.map(lambda n: contexts[n].run(ask, n), range(3)))
    with Tape.open(tape) as written:
        lanes = {exchange.url[-1]: exchange.lane for exchange in written.exchanges}
    assert lanes == {"2": "main/lambda.3", "1": "main/lambda.2", "0": "main/lambda.1"}


def test_threads_older_than_the_session_have_no_order(
    tape: Path, provider: ProviderServer, elder: Callable[[Callable[[], Any]], Any]
) -> None:
    """Process scope covers them. Their calls may come in any order, but all of them must come."""

    def run(client: httpx2.Client, *texts: str) -> None:
        for text in texts:
            elder(partial(ask_sync, client, provider.url, text))

    with httpx2.Client(verify=False) as client:
        with record(tape, scope="process"):
            run(client, "a", "b", "c")
        with Tape.open(tape) as recorded:
            assert {exchange.lane for exchange in recorded.exchanges} == {"threads"}
        with replay(tape, scope="process"):
            run(client, "c", "b", "a")
        for texts in (["c", "b"], ["c", "b", "b"]):
            with pytest.raises(DivergenceError), replay(tape, scope="process"):
                run(client, *texts)


def test_a_nested_session_restores_the_outer_lane(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """After an inner recording the outer one continues on its own lane."""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")
        with record(tape.with_name("inner.tape")):
            http.get(f"{provider.url}/bytes/2")
        http.get(f"{provider.url}/bytes/3")
    with Tape.open(tape) as recorded:
        assert [(e.lane, e.status, e.response_body) for e in recorded.exchanges] == [
            ("main", 200, b"\0"),
            ("main", 200, b"\0\1\2"),
        ]


def test_successive_tasks_of_one_context_share_its_lane(tape: Path) -> None:
    """Cells of a notebook are such tasks, and may or may not reuse the id of an earlier task."""
    context = copy_context()
    lanes: list[str] = []
    session = record(tape)

    async def opening() -> None:
        session.__enter__()

    async def cell() -> None:
        here = current_session()
        assert here is not None
        lanes.append(current_lane(here))

    async def notebook() -> None:
        loop = asyncio.get_running_loop()
        await loop.create_task(opening(), context=context)
        for _ in range(20):
            await loop.create_task(cell(), context=context)
        context.run(session.__exit__, None, None, None)

    asyncio.run(notebook())
    assert lanes == ["main"] * 20
