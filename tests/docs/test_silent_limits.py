"""Limits that show by little or nothing are what the page of limits says they are."""

from __future__ import annotations

import asyncio
import importlib
import random
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import httpx
import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "run.tape"


def ask(provider: ProviderServer, **document: object) -> int:
    """Ask once, and return the status."""
    return httpx.post(f"{provider.url}/echo", json=document).status_code


def outliving(provider: ProviderServer) -> Callable[[], None]:
    """Start a thread that asks when it is told to; return what tells it, and waits."""
    ended = threading.Event()

    def late() -> None:
        ended.wait()
        ask(provider, late=True)

    thread = threading.Thread(target=late)
    thread.start()

    def end() -> None:
        ended.set()
        thread.join()

    return end


def test_a_thread_that_outlives_its_block_is_live(provider: ProviderServer, tape: Path) -> None:
    """What it asks after the block is on no tape, reaches the provider, and is warned of."""
    late = r"run that main/late.1 belonged to has ended: test_silent_limits.py:\d+ reaches 127"
    with tracefork.record(tape) as run:
        ask(provider)
        end = outliving(provider)
    with pytest.warns(RuntimeWarning, match=late):
        end()
    assert run.receipt is not None
    assert (len(provider.requests), run.receipt.crossed) == (2, 1)
    with tracefork.replay(tape):
        ask(provider)
        end = outliving(provider)
    with pytest.warns(RuntimeWarning, match=late):
        end()
    assert len(provider.requests) == 3


def test_a_socket_that_was_open_before_is_live(provider: ProviderServer, tape: Path) -> None:
    """What is sent on it at replay arrives, and nothing tells that."""
    with tracefork.record(tape):
        ask(provider)
    with socket.create_connection(("127.0.0.1", provider.port)) as open_before:
        with tracefork.replay(tape) as run:
            ask(provider)
            open_before.sendall(b"GET /echo HTTP/1.1\r\nhost: here\r\n\r\n")
            assert open_before.recv(12) == b"HTTP/1.1 200"
    assert (len(provider.requests), run.sockets) == (2, 0)


def test_a_task_that_outlives_its_block_is_warned_of(provider: ProviderServer, tape: Path) -> None:
    """What its origin does after the block is the origin's own business, and is not."""

    async def late() -> None:
        await asyncio.sleep(0.01)
        async with httpx.AsyncClient() as client:
            await client.get(f"{provider.url}/echo")

    async def agent() -> None:
        async with tracefork.record(tape):
            task = asyncio.create_task(late())
        with pytest.warns(RuntimeWarning, match=r"the run that main/late.1 belonged to has ended"):
            await task
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await late()
            await asyncio.create_task(late())

    asyncio.run(agent())
    assert len(provider.requests) == 3


def test_a_library_that_outlives_its_block_is_not(provider: ProviderServer, tape: Path) -> None:
    """Exporters of traces send what they have when they like: nobody is warned of each."""
    exporter = threading.Timer(0.5, urlopen, [f"{provider.url}/echo"])
    with tracefork.record(tape):
        exporter.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exporter.join()
    assert len(provider.requests) == 1


def test_a_subinterpreter_is_live_at_replay(provider: ProviderServer, tape: Path) -> None:
    """It has no guard, whatever it was started from, and nothing tells of what it asks."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    interpreters = importlib.import_module(name)
    asks = f"from urllib.request import urlopen; urlopen({provider.url + '/echo'!r}).read()"

    def run() -> None:
        other = interpreters.create()
        assert not interpreters.run_string(other, asks)
        interpreters.destroy(other)

    with tracefork.record(tape) as recording:
        run()
    with tracefork.replay(tape) as replaying:
        run()
    assert len(provider.requests) == 2
    assert recording.receipt is not None
    assert (recording.receipt.strays, replaying.sockets) == ([], 0)


def test_a_python_that_ignores_us_is_live_at_replay(provider: ProviderServer, tape: Path) -> None:
    """The receipt of its recording names it; without subprocesses it is refused.

    Where nothing else is on the tape, its replay says that it proves nothing.
    """
    words = f"import urllib.request as u; u.urlopen('{provider.url}/echo')"

    @tracefork.tool(effect="read")
    def look_up() -> str:
        return "found"

    def agent() -> None:
        look_up()
        subprocess.run([sys.executable, "-I", "-c", words], check=True)

    with tracefork.record(tape) as run:
        agent()
    assert run.receipt is not None
    assert [name[:6] for name in run.receipt.subprocesses] == ["python"]
    with tracefork.replay(tape) as again:
        agent()
    assert (len(provider.requests), again.subprocesses) == (2, run.receipt.subprocesses)
    with (
        pytest.raises(tracefork.EgressError, match="other programs were ruled out"),
        tracefork.replay(tape, subprocesses=False),
    ):
        agent()
    assert len(provider.requests) == 2


class Kept:
    """Keeps a function of the generator where no name of a module leads to it."""

    draw = staticmethod(random.random)


def test_a_draw_that_a_class_keeps_diverges(provider: ProviderServer, tape: Path) -> None:
    """The card says by its looks that it was drawn; called by its name it replays."""

    def agent() -> None:
        ask(provider, drawn=random.random())
        ask(provider, drawn=Kept.draw())

    with tracefork.record(tape):
        agent()
    looks = "a random or measured number"
    with pytest.raises(tracefork.DivergenceError, match=looks) as caught, tracefork.replay(tape):
        agent()
    assert caught.value.divergence.n == 1


def test_a_generator_made_before_goes_on(provider: ProviderServer, tape: Path) -> None:
    """The card says that; seeded anew for each run, it replays."""
    made_before = random.Random()

    def agent(seed: int | None = None) -> None:
        if seed is not None:
            made_before.seed(seed)
        ask(provider, drawn=made_before.random())

    with tracefork.record(tape):
        agent()
    before = "a generator made before the run"
    with pytest.raises(tracefork.DivergenceError, match=before), tracefork.replay(tape):
        agent()
    with tracefork.record(tape, overwrite=True):
        agent(seed=7)
    with tracefork.replay(tape):
        agent(seed=7)


class Counting(httpx.HTTPTransport):
    """A transport of one's own that keeps something."""

    asked = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        return super().handle_request(request)


def test_a_transport_of_ones_own_is_not_run_at_replay(provider: ProviderServer, tape: Path) -> None:
    """The seam is above it. What stands around the client is run, and so are event hooks."""
    counted: list[tuple[int, int]] = []
    for scope in (tracefork.record, tracefork.replay):
        hooked: list[httpx.Request] = []
        with (
            scope(tape),
            Counting() as transport,
            httpx.Client(transport=transport, event_hooks={"request": [hooked.append]}) as client,
        ):
            client.get(f"{provider.url}/echo")
        counted.append((transport.asked, len(hooked)))
    assert counted == [(1, 1), (0, 1)]
