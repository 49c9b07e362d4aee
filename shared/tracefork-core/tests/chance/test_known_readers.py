"""A function that has read the clock before is recorded faster, and in no other way."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest

from tracefork_core import Tape, record, replay
from tracefork_core.chance import clock
from tracefork_core.exchange import call_sites


class _Nobody(set[str]):
    """A set that forgets: no function is ever known."""

    def __contains__(self, _: object) -> bool:
        return False


class Agent:
    """Reads the clock in threads and tasks of all kinds, each function more than once."""

    made = time.time()
    several = [time.time_ns() for _ in range(2)]  # noqa: RUF012

    def plan(self) -> list[object]:
        return [[time.time_ns() for _ in range(3)], {time.time() for _ in range(3)}, *self.lazy()]

    def lazy(self) -> Iterator[object]:
        yield from (datetime.now(UTC) for _ in range(2))
        yield (lambda: time.time())()  # noqa: PLC3002, PLW0108
        yield uuid.uuid1()

    async def task(self, n: int) -> object:
        read = [time.time()]
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(lambda: read.append(time.time()))
        await asyncio.sleep(0)
        inner = asyncio.create_task(self.leaf(n))
        return [read, await inner, await asyncio.to_thread(self.leaf_of_thread)]

    async def leaf(self, n: int) -> object:
        return [n, time.time_ns(), time.time_ns()]

    def leaf_of_thread(self) -> object:
        return [time.time(), time.time()]


def agent() -> None:
    async def tasks() -> None:
        await asyncio.gather(*(Agent().task(n) for n in range(3)))

    for _ in range(2):
        exec(compile(SOURCE, "made.py", "exec"), {"__name__": "made"})
        Agent().plan()
    asyncio.run(tasks())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: Agent().leaf_of_thread(), range(4)))
    # In a context of its own, and in none.
    for run in (contextvars.copy_context().run, contextvars.Context().run):
        thread = threading.Thread(target=run, args=(Agent().leaf_of_thread,))
        thread.start()
        thread.join()


SOURCE = "import time\nclass Made:\n    at = [time.time() for _ in range(2)]\ntime.time()\n"


def reads(tape: Path) -> Counter[tuple[str, str]]:
    """Return how often each call site of each lane read the clock."""
    found: Counter[tuple[str, str]] = Counter()
    with Tape.open(tape) as recorded:
        for drawn in recorded.draws:
            if drawn.source == clock.SOURCE:
                found[drawn.lane, drawn.site] += len(drawn.values)
    return found


def test_known_readers_are_recorded_like_unknown_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same call sites, on the same lanes, equally often."""
    sessions = clock._sessions
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "_readers", _Nobody())
        with record(tmp_path / "slow.tape"):
            agent()
    for name in ("mixed", "fast"):
        with record(tmp_path / f"{name}.tape"):
            agent()
    slow = reads(tmp_path / "slow.tape")
    assert reads(tmp_path / "mixed.tape") == reads(tmp_path / "fast.tape") == slow
    assert slow.total() > 50
    assert {"made:Made", "made:<module>"} < {site for _, site in slow}


def test_most_reads_take_the_fast_path(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: only the first read of a function takes the slow path."""
    looked: list[int] = []

    def looking(depth: int, through: Collection[str]) -> tuple[str | None, FrameType | None]:
        looked.append(depth)
        return call_sites.call_site(depth + 1, through)

    monkeypatch.setattr(f"{clock.__name__}.call_site", looking)
    monkeypatch.setattr(clock._sessions, "_readers", set())
    with record(tape):
        for _ in range(20):
            time.time()
    assert len(looked) == 1
    with replay(tape):
        for _ in range(20):
            time.time()
    assert len(looked) == 21
