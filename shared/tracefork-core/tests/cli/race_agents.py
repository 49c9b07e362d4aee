"""Agents with concurrent requests, for the tests of `tracefork race`: NAME after `--`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx2

BASE = os.environ["PROVIDER"]
WORDS = ["one", "two", "three"]


def asking(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def ask(text: str) -> str:
    answer = httpx2.post(f"{BASE}/v1/chat/completions", json=asking(text)).json()
    return str(answer["choices"][0]["message"]["content"])


async def branches(*jobs: Awaitable[object]) -> None:
    await asyncio.gather(*jobs)


class Model:
    def __init__(self) -> None:
        self.client = httpx2.AsyncClient(base_url=BASE)

    async def ask(self, text: str) -> str:
        answer = (await self.client.post("/v1/chat/completions", json=asking(text))).json()
        return str(answer["choices"][0]["message"]["content"])


async def arrival() -> None:
    """Join answers in the order of arrival, so that the last prompt depends on it."""
    model, came = Model(), []

    async def branch(word: str) -> None:
        came.append(await model.ask(f"@say {word}"))

    await branches(*map(branch, WORDS))
    await model.ask("Join " + ", ".join(came))


async def ordered() -> None:
    """Join answers in the order of the requests."""
    model = Model()
    came = await asyncio.gather(*(model.ask(f"@say {word}") for word in WORDS))
    await model.ask("Join " + ", ".join(came))


async def printing() -> None:
    """Print answers in the order of arrival, and make no other request."""
    model = Model()

    async def branch(word: str) -> None:
        print(await model.ask(f"@say {word}"))

    await branches(*map(branch, WORDS))


async def addresses() -> None:
    """Print something that differs in each run."""
    model = Model()
    print(os.getpid(), await asyncio.gather(*(model.ask(f"@say {word}") for word in WORDS)))


async def impatient() -> None:
    """Fail if the second answer arrives before the first."""
    model, came = Model(), []

    async def branch(word: str) -> None:
        came.append(await model.ask(f"@say {word}"))
        if came == ["two"]:
            raise LookupError("nothing to add to")

    await branches(*map(branch, WORDS[:2]))


async def limited() -> None:
    """Use the answers that arrived before a timeout."""
    model = Model()
    tasks = [asyncio.create_task(model.ask(f"@say {word}")) for word in ("one", "three")]
    done, _ = await asyncio.wait(tasks, timeout=0.02)
    await model.ask(f"There are {len(done)}")
    await asyncio.wait(tasks)


async def hedged() -> None:
    """Use the first answer, and cancel the other requests."""
    model = Model()
    tasks = [asyncio.create_task(model.ask(f"@say {word}")) for word in WORDS]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.wait(tasks)
    await model.ask("First " + min(task.result() for task in done))


async def single() -> None:
    """Make one request, and sleep meanwhile."""
    model = Model()

    async def nap() -> None:
        await asyncio.sleep(0.01)
        print("slept")

    async def branch() -> None:
        print(await model.ask("@say one"))

    await branches(nap(), branch())


async def silent() -> None:
    """Sleep, and make no request."""
    await branches(asyncio.sleep(0.01), asyncio.sleep(0.02))


def pool() -> None:
    """Use the results of a pool as they are completed."""
    with ThreadPoolExecutor(3) as executor:
        jobs = [executor.submit(ask, f"@say {word}") for word in WORDS]
        ask("Join " + ", ".join(job.result() for job in as_completed(jobs)))


def in_threads(otherwise: Callable[[], object]) -> None:
    """Behave differently if the second answer arrives before the first."""
    came: list[str] = []

    def job(word: str) -> None:
        came.append(ask(f"@say {word}"))
        if came == ["two"]:
            otherwise()

    with ThreadPoolExecutor(2) as executor:
        for word in WORDS[:2]:
            executor.submit(job, word)


def gone() -> None:
    """End at once, without any cleanup."""
    in_threads(lambda: os._exit(9))


def stuck() -> None:
    """Never end."""
    in_threads(threading.Event().wait)


def sequential() -> None:
    """Make one request after another."""
    for word in WORDS:
        ask(f"@say {word}")


if __name__ == "__main__":
    found = globals()[sys.argv[1]]()
    if asyncio.iscoroutine(found):
        asyncio.run(found)
