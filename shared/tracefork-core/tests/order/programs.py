"""Concurrent agents whose last prompt shows the order in which everything arrived.

Each agent takes the URL of a provider with delayed answers, joins the answers in the order of
arrival, sends the joined text, and returns the answer. Run as a script: NAME URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from queue import Empty, Queue
from typing import Any

import anyio
import httpx2

Program = Callable[[str], str]
PROGRAMS: dict[str, Program] = {}


def asking(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def said(answer: httpx2.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


class Sync:
    """A client that sends one request at a time, from any thread."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.Client(verify=False, base_url=url)

    def ask(self, text: str) -> str:
        return said(self.client.post("/v1/chat/completions", json=asking(text)))


class Async:
    def __init__(self, url: str) -> None:
        self.client = httpx2.AsyncClient(verify=False, base_url=url)

    async def ask(self, text: str) -> str:
        return said(await self.client.post("/v1/chat/completions", json=asking(text)))


def sync(main: Callable[[Sync], str]) -> None:
    """Register a function as a program."""

    def run(url: str) -> str:
        model = Sync(url)
        with model.client:
            return main(model)

    PROGRAMS[main.__name__] = run


def runs(main: Callable[..., Any]) -> None:
    """Register a coroutine function, which takes one client or two, as a program."""

    async def under_clients(url: str) -> str:
        here, there = Async(url), Sync(url)
        async with here.client:
            with there.client:
                both = main.__code__.co_argcount == 2
                return str(await (main(here, there) if both else main(here)))

    PROGRAMS[main.__name__] = lambda url: asyncio.run(under_clients(url))


@runs
async def gather(model: Async) -> str:
    came: list[Any] = []

    async def branch(i: int) -> None:
        came.append(f"{i} {await model.ask(f'a {i}')}")
        for _ in range(5 * i % 7):
            await asyncio.sleep(0)
        came.append(f"{i} {await model.ask(f'b {i} {came}')}")

    await asyncio.gather(*(branch(i) for i in range(4)))
    return await model.ask("\n".join(came))


@runs
async def task_group(model: Async) -> str:
    came: list[Any] = []

    async def leaf(i: int, j: int) -> None:
        came.append(f"{i}.{j} {await model.ask('same')}")

    async def branch(i: int) -> None:
        async with asyncio.TaskGroup() as group:
            for j in range(2):
                group.create_task(leaf(i, j))
        came.append(f"{i} {await model.ask(f'sum {i} {came}')}")

    async with asyncio.TaskGroup() as group:
        for i in range(3):
            group.create_task(branch(i))
    return await model.ask("\n".join(came))


@runs
async def first_completed(model: Async) -> str:
    came: list[Any] = []
    pending = {asyncio.create_task(model.ask(f"{i}"), name=str(i)) for i in range(5)}
    while len(pending) > 1:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        came.append(sorted(task.get_name() for task in done))
        came.append(await model.ask(f"so far {came}"))
    for task in pending:
        task.cancel()
    return await model.ask(f"{came}")


@runs
async def in_the_order_of_completion(model: Async) -> str:
    came: list[Any] = []
    for next_done in asyncio.as_completed([model.ask(f"{i}") for i in range(5)]):
        came.append(await next_done)
        came.append(await model.ask(f"so far {came}"))
    return await model.ask(f"{came}")


@runs
async def tried_again_until_completed(model: Async) -> str:
    """Coroutines without tasks of their own draw and sleep, each on its own lane."""

    async def stubborn(i: int) -> str:
        first = await model.ask(f"{i}")
        await asyncio.sleep(random.random() / 200)
        return await model.ask(f"{i} again, after {first}: {random.random()}")

    came = [await next_done for next_done in asyncio.as_completed([stubborn(i) for i in range(5)])]
    return await model.ask(f"{came}")


@runs
async def all_at_once(model: Async) -> str:
    """Iterating over a set of tasks gives them in the order in which they were started."""
    tasks = [asyncio.create_task(model.ask(f"{i}")) for i in range(9)]
    done, _ = await asyncio.wait(set(tasks))
    came = [task.result() for task in done]
    tasks = [asyncio.create_task(model.ask(f"slow {i}"), name=f"{i}") for i in range(9)]
    _, pending = await asyncio.wait(tasks, timeout=0.01)
    for task in pending:
        task.cancel()
    return await model.ask(f"{came} {[task.get_name() for task in pending]}")


@runs
async def nursery(model: Async) -> str:
    came: list[Any] = []
    sent, received = anyio.create_memory_object_stream[str](10)

    async def branch(i: int) -> None:
        await sent.send(await model.ask(f"{i}"))

    async with sent, received, anyio.create_task_group() as group:
        for i in range(4):
            group.start_soon(branch, i)
        for _ in range(4):
            came.append(await received.receive())
            came.append(await model.ask(f"so far {came}"))
    return await model.ask(f"{came}")


@sync
def pool(model: Sync) -> str:
    came: list[Any] = []

    def job(i: int) -> str:
        answer = model.ask(f"{i}")
        came.append(f"job {i}")
        return answer

    with ThreadPoolExecutor(4) as executor:
        jobs = [executor.submit(job, i) for i in range(4)]
        came.extend(future.result() for future in as_completed(jobs))
    return model.ask(f"{came}")


@sync
def all_of_a_pool(model: Sync) -> str:
    with ThreadPoolExecutor(9) as executor:
        jobs = [executor.submit(model.ask, f"{i}") for i in range(9)]
        done, _ = futures.wait(jobs)
        came = [job.result() for job in done]
        came += [job.result() for job in futures.as_completed(set(jobs))]
    return model.ask(f"{came}")


@sync
def first_of_a_pool(model: Sync) -> str:
    came: list[Any] = []
    with ThreadPoolExecutor(4) as executor:
        pending = {executor.submit(model.ask, f"{i}") for i in range(4)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            came.append(sorted(future.result() for future in done))
            came.append(model.ask(f"so far {came}"))
    return model.ask(f"{came}")


@sync
def threads(model: Sync) -> str:
    came: list[Any] = []

    def work(i: int) -> None:
        came.append(f"{i} {model.ask('same')}")
        came.append(f"{i} {model.ask(f'again {i} {came}')}")

    workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return model.ask(f"{came}")


@runs
async def to_threads(_: Async, model: Sync) -> str:
    came: list[Any] = []

    def job(i: int) -> str:
        answer = model.ask("same")
        came.append(f"job {i}")
        return answer

    async def branch(i: int) -> None:
        came.append(await asyncio.to_thread(job, i))

    await asyncio.gather(*(branch(i) for i in range(4)))
    return await asyncio.to_thread(model.ask, f"{came}")


@runs
async def mixture(here: Async, there: Sync) -> str:
    came: list[Any] = []

    def leaves(i: int) -> str:
        with ThreadPoolExecutor(2) as executor:
            jobs = [executor.submit(there.ask, f"leaf {i} {j}") for j in range(2)]
            return " ".join(job.result() for job in as_completed(jobs))

    async def branch(i: int) -> None:
        if i % 2:
            came.append(await asyncio.to_thread(leaves, i))
        else:
            came.append(await here.ask(f"branch {i}"))
        came.append(await here.ask(f"so far {i} {came}"))

    async with asyncio.TaskGroup() as group:
        for i in range(4):
            group.create_task(branch(i))
    return await here.ask(f"{came}")


@runs
async def limits(model: Async) -> str:
    """Some answers arrive before a timeout, and some after it."""
    came: list[Any] = []
    tasks = [asyncio.create_task(model.ask(f"slow {i}" if i % 2 else f"{i}")) for i in range(4)]
    done, pending = await asyncio.wait(tasks, timeout=0.06)
    came.append([task in done for task in tasks])
    came.extend([await task for task in tasks if task in pending])
    with contextlib.suppress(TimeoutError):
        came.append(await asyncio.wait_for(model.ask("slow one"), 0.03))
    return await model.ask(f"{came}")


@runs
async def heartbeats(model: Async) -> str:
    """A task sleeps beside the others, and its notes appear between their answers."""
    came: list[Any] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.01)
            came.append("beat")

    beating = asyncio.create_task(beat())
    for i in range(3):
        came.append(await model.ask(f"slow {i} {came}"))
    beating.cancel()
    return await model.ask(f"{came}")


@runs
async def a_sleep_cut_short(model: Async) -> str:
    came: list[Any] = []
    for seconds in (0.02, 0.2):
        try:
            async with asyncio.timeout(0.06):
                came.append(await model.ask("quick"))
                await asyncio.sleep(seconds)
                came.append("slept")
                await asyncio.sleep(0.01)
        except TimeoutError:
            came.append("cut short")
    return await model.ask(f"{came}")


@sync
def limits_in_threads(model: Sync) -> str:
    came: list[Any] = []
    with ThreadPoolExecutor(3) as executor:
        jobs = [executor.submit(model.ask, text) for text in ("slow 1", "0", "slow 2")]
        for job in jobs:
            try:
                came.append(job.result(timeout=0.03))
            except TimeoutError:
                came.append("too late")
        wait(jobs)
        came.append(sorted(job.result() for job in jobs))
    return model.ask(f"{came}")


@sync
def patience(model: Sync) -> str:
    """A thread checks for an answer every few milliseconds."""
    came: list[Any] = []
    with ThreadPoolExecutor(1) as executor:
        job = executor.submit(model.ask, "slow")
        while not job.done():
            time.sleep(0.005)
            came.append("waited")
    return model.ask(f"{came} {job.result()}")


@sync
def idle_workers(model: Sync) -> str:
    """Threads that share a queue end when it was empty for a while, each at its own time."""
    came: list[Any] = []
    work, done = Queue[str](), Queue[str]()

    def serve() -> None:
        with contextlib.suppress(Empty):
            while True:
                done.put(model.ask(work.get(timeout=0.03)))

    workers = [threading.Thread(target=serve) for _ in range(2)]
    for worker in workers:
        worker.start()
    for i in range(4):
        work.put(f"{i}")
    came.extend(done.get() for _ in range(4))
    for worker in workers:
        worker.join()
    return model.ask(f"{came}")


if __name__ == "__main__":
    print(PROGRAMS[sys.argv[1]](sys.argv[2]))
