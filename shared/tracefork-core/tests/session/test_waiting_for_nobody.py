"""Who waits for a thread that left the tape is told, instead of waiting for ever."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, fork, record, replay
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
    """Ask in a thread, and look every now and then whether it is done."""
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
def test_a_replay_ends(tape: Path, agent: Callable[..., None], wait: Callable[[], object]) -> None:
    """By each way to wait for a while; where nothing differs, the wait is as it was."""
    with record(tape):
        agent(wait, "second")
    with replay(tape):
        agent(wait, "second")
    with pytest.raises(DivergenceError, match="recorded exchange 1"), replay(tape):
        agent(wait, "another")


def test_a_fork_ends_that_left_its_tape_before_its_point(
    tape: Path, tmp_path: Path, agent: Callable[..., None], provider: ProviderServer
) -> None:
    """What comes before the point of a fork is replayed, and proven."""
    with record(tape):
        agent(WAITS["sleep"], "second")
        httpx2.post(f"{provider.url}/echo", json={"text": "third"})
    with pytest.raises(DivergenceError), fork(tape, at=2, to=tmp_path / "branch.tape"):
        agent(WAITS["sleep"], "another")
