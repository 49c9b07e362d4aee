"""A session covers what is started from its block, and other work of the process is left alone."""

from __future__ import annotations

import asyncio
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import EgressError, UsageError, carry, record, replay
from tracefork_testkit import ProviderServer

from .asking import Worker, aask, ask, asked_on


def test_another_task_of_the_loop_is_left_alone(tape: Path, provider: ProviderServer) -> None:
    """Its request is answered, and the receipt counts it."""

    async def recorded() -> Any:
        with record(tape) as run:
            await aask(provider.url, "mine")
            inside.set()
            await left.wait()
        return run

    async def stranger() -> str:
        await inside.wait()
        said = await aask(provider.url, "theirs")
        left.set()
        return said

    async def both() -> Any:
        return await asyncio.gather(recorded(), stranger())

    inside, left = asyncio.Event(), asyncio.Event()
    run, said = asyncio.run(both())
    assert said == "theirs"
    assert asked_on(tape) == ["mine"]
    assert run.receipt.left_alone == 1
    assert run.receipt.strays == []
    assert (run.receipt.connections, run.receipt.crossed) == (1, 1)


def test_process_scope_records_an_older_thread(
    tape: Path, provider: ProviderServer, worker: Worker
) -> None:
    """The control: the same thread is on the tape where the whole process is covered."""
    for scope, recorded in (("context", ["mine"]), ("process", ["mine", "theirs"])):
        with record(tape, overwrite=True, scope=scope) as run:  # type: ignore[arg-type]
            ask(provider.url, "mine")
            worker.run(lambda: ask(provider.url, "theirs"))
        assert asked_on(tape) == recorded
        assert run.receipt is not None
        assert run.receipt.left_alone == (scope == "context")


def test_a_carried_job_is_recorded_and_replayed(
    tape: Path, provider: ProviderServer, worker: Worker
) -> None:
    """A worker's queue does not tell whose job it holds; `carry` does."""

    def run() -> list[str]:
        return [worker.run(carry(lambda text=text: ask(provider.url, text))) for text in "abc"]

    with record(tape):
        recorded = run()
    assert asked_on(tape) == ["a", "b", "c"]
    for _ in range(3):
        with replay(tape) as again:
            assert run() == recorded
        assert (again.exchanges, again.left_alone) == (3, 0)
    assert carry(ask) is ask


@pytest.mark.parametrize("kind", ["coroutine", "generator", "async generator"])
def test_carry_binds_every_kind_of_function(
    tape: Path, provider: ProviderServer, worker: Worker, kind: str
) -> None:
    """A coroutine function, and generators, of which each step is carried."""

    async def coroutine() -> list[str]:
        return [await aask(provider.url, text) for text in "ab"]

    def generator() -> Iterator[str]:
        for text in "ab":
            yield ask(provider.url, text)

    async def async_generator() -> AsyncIterator[str]:
        for text in "ab":
            yield await aask(provider.url, text)

    def job() -> Callable[[], list[str]]:
        if kind == "generator":
            carried = carry(generator)
            return lambda: list(carried())
        if kind == "coroutine":
            bound = carry(coroutine)
            return lambda: asyncio.run(bound())
        steps = carry(async_generator)

        async def collect() -> list[str]:
            return [text async for text in steps()]

        return lambda: asyncio.run(collect())

    with record(tape):
        assert worker.run(job()) == ["a", "b"]
    assert asked_on(tape) == ["a", "b"]
    with replay(tape):
        assert worker.run(job()) == ["a", "b"]


def test_pools_older_than_the_block_run_its_jobs(tape: Path, provider: ProviderServer) -> None:
    """Each way to give work to either pool; the workers' own requests stay off the tape."""
    with ThreadPoolExecutor(2) as executor, ThreadPool(2) as pool:
        executor.submit(ask, provider.url, "before").result()
        pool.apply(ask, (provider.url, "before"))

        def run() -> list[str]:
            return [
                executor.submit(ask, provider.url, "submit").result(),
                *executor.map(lambda text: ask(provider.url, text), ["map 1", "map 2"]),
                pool.apply(ask, (provider.url, "apply")),
                *pool.map(lambda text: ask(provider.url, text), ["pool 1", "pool 2"]),
                *pool.starmap(ask, [(provider.url, "star")]),
                *pool.imap(lambda text: ask(provider.url, text), ["imap"]),
                *pool.imap_unordered(lambda text: ask(provider.url, text), ["unordered"]),
            ]

        with record(tape):
            recorded = run()
        assert sorted(asked_on(tape)) == sorted(recorded)
        for _ in range(3):
            with replay(tape) as again:
                assert run() == recorded
            assert again.exchanges == len(recorded)
        with record(tape, overwrite=True):
            pass
        executor.submit(ask, provider.url, "after").result()
        assert asked_on(tape) == []


def test_fifty_sessions_side_by_side(tmp_path: Path, provider: ProviderServer) -> None:
    """Each tape holds its own run alone, and unrecorded tasks between them get their answers."""

    async def one(n: int) -> str:
        if n % 2:
            return await aask(provider.url, f"{n}")
        with record(tmp_path / f"{n}.tape"):
            return await aask(provider.url, f"{n}")

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one(n) for n in range(100)))

    assert asyncio.run(all_of_them()) == [f"{n}" for n in range(100)]
    assert [asked_on(tmp_path / f"{n}.tape") for n in range(0, 100, 2)] == [
        [f"{n}"] for n in range(0, 100, 2)
    ]


def test_a_replay_gives_other_work_no_recorded_values(tape: Path, worker: Worker) -> None:
    """Ids, random numbers and the clock of other threads stay real."""

    def draws() -> tuple[str, int, float]:
        return str(uuid.uuid4()), random.getrandbits(64), random.random()

    with record(tape):
        recorded = [draws() for _ in range(5)]
    with replay(tape) as again:
        theirs = [worker.run(draws) for _ in range(5)]
        mine = [draws() for _ in range(5)]
    assert mine == recorded
    assert not set(theirs) & set(recorded)
    assert (again.entropy_misses, again.clock_misses) == (0, 0)


def test_a_recording_gives_no_random_number_twice(tape: Path, worker: Worker) -> None:
    """The real generator is not set back to where the recording left it."""
    with record(tape):
        mine = random.getrandbits(64)
        theirs = [worker.run(lambda: random.getrandbits(64)) for _ in range(3)]
    later = [random.getrandbits(64) for _ in range(3)]
    assert len({mine, *theirs, *later}) == 7


def test_other_work_starts_programs_unwatched(tape: Path, worker: Worker) -> None:
    """Its subprocess gets no variable of ours; that of the session does."""
    code = "import os; print('TRACEFORK_EGRESS' in os.environ, os.environ.get('PYTHONPATH'))"

    unseen = "import os; assert 'TRACEFORK_EGRESS' in os.environ"

    def variables() -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    before = variables()
    with record(tape) as run:
        mine, theirs = variables(), worker.run(variables)
        status = os.system(f'{sys.executable} -c "{unseen}"')
        environment = dict(os.environ)
    assert mine.startswith("True")
    assert theirs == before
    assert before.startswith("False")
    assert status == 0
    assert "TRACEFORK_EGRESS" not in environment
    assert run.receipt is not None
    assert run.receipt.subprocesses == [Path(sys.executable).name]  # What a shell starts is named.


def test_replay_refuses_sockets_of_its_own_run_only(tape: Path, worker: Worker) -> None:
    """With process scope it refuses those of other threads as well."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()

        def connect() -> None:
            with socket.socket() as connection:
                connection.connect(address)

        with record(tape) as run:
            worker.run(connect)
        assert run.receipt is not None
        assert run.receipt.connections == 0
        with replay(tape):
            worker.run(connect)
        with pytest.raises(EgressError), replay(tape):
            connect()
        with pytest.raises(EgressError), replay(tape, scope="process"):
            worker.run(connect)


def test_only_one_session_can_have_process_scope(tmp_path: Path) -> None:
    """A session with context scope may open inside it."""
    with record(tmp_path / "outer.tape", scope="process"):
        with (
            pytest.raises(UsageError, match="scope"),
            record(tmp_path / "inner.tape", scope="process"),
        ):
            pass
        with record(tmp_path / "inner.tape"):
            pass
    with pytest.raises(UsageError, match="everything"):
        record(tmp_path / "none.tape", scope="everything")  # type: ignore[arg-type]


@pytest.mark.parametrize("late", [False, True])
def test_a_callback_of_a_future_is_recorded(
    tape: Path, provider: ProviderServer, late: bool
) -> None:
    """A thread of the pool calls it after the job, or the caller if the job has ended already."""

    def run() -> str:
        said: queue.Queue[str] = queue.Queue()
        go = threading.Event()
        if late:
            go.set()
        future = executor.submit(go.wait, 30)
        if late:
            future.result()
        future.add_done_callback(lambda _: said.put(ask(provider.url, "called back")))
        go.set()
        return said.get(timeout=30)

    with ThreadPoolExecutor(1) as executor:
        executor.submit(int).result()
        with record(tape):
            assert run() == "called back"
        assert asked_on(tape) == ["called back"]
        with replay(tape) as again:
            assert run() == "called back"
        assert again.exchanges == 1
