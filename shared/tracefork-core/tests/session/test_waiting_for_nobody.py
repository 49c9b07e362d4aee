"""A run that waits for a thread stopped by a divergence ends, or is warned."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, fork, record, replay
from tracefork_core.session import run_state
from tracefork_testkit import ProviderServer

_MOMENT = 0.02


def got_nothing() -> None:
    with suppress(queue.Empty):
        queue.Queue[None]().get(timeout=_MOMENT)


WAITS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(_MOMENT),
    "asyncio.sleep": lambda: asyncio.run(asyncio.sleep(_MOMENT)),
    "Event.wait": lambda: threading.Event().wait(_MOMENT),
    "Queue.get": got_nothing,
}


@pytest.fixture
def agent(provider: ProviderServer, http: httpx2.Client) -> Iterator[Callable[..., None]]:
    """Make a call in a thread, and check regularly whether it is done."""
    in_vain: list[str] = []

    def run(wait: Callable[[], object], text: str) -> None:
        done: list[bool] = []

        def ask() -> None:
            with suppress(DivergenceError):
                http.post(f"{provider.url}/echo", json={"text": "first"})
                http.post(f"{provider.url}/echo", json={"text": text})
                done.append(True)

        threading.Thread(target=ask).start()
        for _ in range(250):
            if done:
                return
            wait()
        in_vain.append(text)  # Anything that is raised here the divergence would replace.

    yield run
    assert in_vain == []


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_a_replay_ends_though_a_thread_stopped_at_a_divergence(
    tape: Path, agent: Callable[..., None], wait: Callable[[], object]
) -> None:
    """With each way to wait for a while; without a divergence the wait is as recorded."""
    with record(tape):
        agent(wait, "second")
    with replay(tape):
        agent(wait, "second")
    with pytest.raises(DivergenceError, match="exchange 1"), replay(tape):
        agent(wait, "another")


def test_a_fork_ends_after_a_divergence_in_its_prefix(
    tape: Path, tmp_path: Path, agent: Callable[..., None], provider: ProviderServer
) -> None:
    """The prefix is replayed and proven like a replay."""
    with record(tape):
        agent(WAITS["sleep"], "second")
        httpx2.post(f"{provider.url}/echo", json={"text": "third"})
    with pytest.raises(DivergenceError), fork(tape, at=2, to=tmp_path / "branch.tape"):
        agent(WAITS["sleep"], "another")


class Pool:
    """A worker, and a caller that waits until it has done everything, or until `stop`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._todo: asyncio.Queue[str] = asyncio.Queue()

    async def run(self, *texts: str) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        for text in texts:
            self._todo.put_nowait(text)
        async with httpx2.AsyncClient(verify=False) as client:
            tasks = [asyncio.create_task(one) for one in (self._work(client), self._stopped.wait())]
            joining = asyncio.create_task(self._todo.join())
            await asyncio.wait((joining, tasks[1]), return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, joining):
                task.cancel()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _work(self, client: httpx2.AsyncClient) -> None:
        while True:
            text = await self._todo.get()
            await client.post(f"{self._url}/echo", json={"text": text})
            self._todo.task_done()


def test_a_hanging_run_is_warned_about(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that failed marks nothing as done. A run without divergence gets no warning."""
    monkeypatch.setattr(run_state, "HANG_SECONDS", _MOMENT)
    said: list[str] = []

    def show(message: Warning | str, *rest: object) -> None:
        said.append(str(message))
        pool.stop()

    with record(tape):
        asyncio.run(Pool(provider.url).run("first", "second"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        with replay(tape):
            asyncio.run(Pool(provider.url).run("first", "second"))
        assert said == []
        pool = Pool(provider.url)
        with pytest.raises(DivergenceError, match="exchange 1"), replay(tape):
            asyncio.run(pool.run("first", "another"))
    assert len(said) == 1
    assert f"{_MOMENT:g} seconds" in said[0]
