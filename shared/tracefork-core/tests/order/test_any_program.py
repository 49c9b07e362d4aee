"""A random concurrent agent replays equal: tasks, threads, streams, subprocesses, timeouts."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tracefork_core import Tape, fork, record, replay
from tracefork_testkit import ModelRequest, ProviderServer, Reply

EXAMPLES = int(os.environ.get("TRACEFORK_REPEAT", "20"))


@dataclass(frozen=True)
class Do:
    """A step of an agent: an action, its parameter, and the steps inside it."""

    what: str
    number: int = 0
    steps: tuple[Do, ...] = ()


class Agent:
    """Runs steps, and notes everything in the order in which it happens."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.here = httpx2.AsyncClient(verify=False)
        self.there = httpx2.Client(verify=False)
        self.came: list[str] = []

    def _asking(self, do: Do, seen: object = "", **more: Any) -> dict[str, Any]:
        text = f"{do.number} {seen}"
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        return {"url": f"{self._url}/v1/chat/completions", "json": body}

    def _note(self, do: Do, what: object) -> None:
        self.came.append(f"{do.what} {do.number} {what}")

    async def task(self, do: Do) -> None:
        match do.what:
            case "ask":
                seen = self.came if do.number % 2 else ""
                self._note(do, _said(await self.here.post(**self._asking(do, seen))))
            case "stream":
                async with self.here.stream("POST", **self._asking(do, stream=True)) as answer:
                    async for line in answer.aiter_lines():
                        self._note(do, line)
            case "program":
                await asyncio.to_thread(self.job, do)
            case "sleep":
                await asyncio.sleep(do.number / 1000)
                self._note(do, "over")
            case "fail":
                raise LookupError(do.number)
            case "in turn":
                for step in do.steps:
                    await self.task(step)
            case "at once":
                ended = await asyncio.gather(*map(self.task, do.steps), return_exceptions=True)
                self._note(do, [type(one).__name__ for one in ended])
            case "first":
                tasks = [asyncio.create_task(self.task(step)) for step in do.steps]
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                self._note(do, [task in done for task in tasks])
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            case "within":
                try:
                    async with asyncio.timeout(do.number / 1000):
                        await self.task(do.steps[0])
                except TimeoutError:
                    self._note(do, "too late")
            case "in a thread":
                await asyncio.to_thread(self.job, do.steps[0])
            case "in a pool":
                await asyncio.to_thread(self.pool, do)

    def job(self, do: Do) -> None:
        """Do a step in a thread.

        Two threads that do not wait for anything outside race each other in any Python: their order
        is unknown. So a failing step makes a request first, and no step here reads earlier notes.
        """
        match do.what:
            case "ask":
                self._note(do, _said(self.there.post(**self._asking(do))))
            case "stream":
                with self.there.stream("POST", **self._asking(do, stream=True)) as answer:
                    for line in answer.iter_lines():
                        self._note(do, line)
            case "program":
                subprocess.run(["sleep", f"{do.number / 1000}"], check=True)
                self._note(do, "ended")
            case "sleep":
                time.sleep(do.number / 1000)
                self._note(do, "over")
            case "fail":
                self.there.post(**self._asking(do))
                raise LookupError(do.number)
            case "in a pool" | "at once" | "first":
                self.pool(do)
            case _:
                for step in do.steps:
                    self.job(step)

    def pool(self, do: Do) -> None:
        with ThreadPoolExecutor(3) as executor:
            for job in as_completed([executor.submit(self.job, step) for step in do.steps]):
                self._note(do, type(job.exception()).__name__)


def _said(answer: httpx2.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def script(request: ModelRequest) -> Reply:
    return Reply(text=f"{random.random():.4f}", delay=random.choice([0, 0.001, 0.002, 0.01]))


DEEDS = ["ask", "ask", "ask", "stream", "sleep", "program", "fail"]
LEAVES = st.builds(Do, st.sampled_from(DEEDS), st.integers(1, 12))
STEPS = st.recursive(
    LEAVES,
    lambda steps: st.one_of(
        st.builds(
            Do,
            st.sampled_from(["in turn", "at once", "at once", "first", "in a pool"]),
            st.integers(1, 9),
            st.lists(steps, min_size=2, max_size=3).map(tuple),
        ),
        st.builds(
            Do,
            st.sampled_from(["within", "in a thread"]),
            st.integers(5, 40),
            st.tuples(steps),
        ),
    ),
    max_leaves=8,
)


async def run(url: str, do: Do) -> list[str]:
    agent = Agent(url)
    async with agent.here:
        with agent.there:
            await asyncio.gather(agent.task(do), return_exceptions=True)
            await agent.task(Do("ask", 1))
            return list(agent.came)  # Tasks that nobody waits for go on while the clients close.


_SETTINGS = settings(
    max_examples=EXAMPLES,
    derandomize="TRACEFORK_REPEAT" not in os.environ,  # New programs are for the night.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def recorded(path: Path) -> int:
    with Tape.open(path) as tape:
        return len(tape.exchanges)


@_SETTINGS
@given(do=STEPS)
@example(do=Do("within", 9, (Do("within", 5, (Do("sleep", 9),)),)))
@example(do=Do("within", 2, (Do("in a thread", 2, (Do("sleep", 1),)),)))
def test_a_random_agent_replays_equal(do: Do) -> None:
    """All notes, their order, and the last request are equal."""
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "run.tape"
        with ProviderServer(script) as provider, record(tape):
            url = provider.url
            first = asyncio.run(run(url, do))
        with replay(tape) as replaying:
            assert asyncio.run(run(url, do)) == first
        assert (replaying.digest, replaying.reordered) == (replaying.tape.digest, 0)


@_SETTINGS
@given(do=STEPS, where=st.floats(0, 1))
def test_forks_of_a_random_agent_replay_equal(do: Do, where: float) -> None:
    """At any fork point, in whatever order live answers arrive among the recorded ones."""
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "run.tape"
        with ProviderServer(script) as provider:
            url = provider.url
            with record(tape):
                asyncio.run(run(url, do))
            with fork(tape, at=round(where * (recorded(tape) - 1))) as branch:
                forked = asyncio.run(run(url, do))
        with replay(branch.path) as replaying:
            assert asyncio.run(run(url, do)) == forked
        assert (replaying.digest, replaying.reordered) == (branch.digest, 0)
