"""A client that outlives its event loop serves one session after another."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import httpx2
import pytest

from tracefork_core import Tape, fork, record
from tracefork_testkit import ProviderServer

both = pytest.mark.parametrize("lib", [httpx, httpx2], ids=["httpx", "httpx2"])


@pytest.fixture(autouse=True)
def unclosed() -> Iterator[None]:
    """Collect what each test leaves open: its loop is gone, so that nothing can close it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@both
def test_each_session_may_have_a_loop_of_its_own(
    lib: ModuleType, provider: ProviderServer, tmp_path: Path
) -> None:
    """A blame runs an agent with `asyncio.run` once in each fork; the connections are pooled."""
    client = lib.AsyncClient()

    async def ask() -> str:
        answer = await client.post(f"{provider.url}/echo", content=b"hello")
        return str(answer.text)

    for name in ("a.tape", "b.tape"):
        with record(tmp_path / name):
            assert asyncio.run(ask()) == "hello"
        with Tape.open(tmp_path / name) as tape:
            assert len(tape.exchanges) == 1
    for _ in range(2):
        with fork(tmp_path / "a.tape", 0, writes="allow") as forked:
            assert asyncio.run(ask()) == "hello"
        assert forked.live == 1


@both
def test_two_loops_in_one_session_are_as_without_it(
    lib: ModuleType, provider: ProviderServer, tmp_path: Path
) -> None:
    """The negative control: recording does not change what a program does."""
    client = lib.AsyncClient()

    async def ask() -> None:
        await client.post(f"{provider.url}/echo", content=b"hello")

    with record(tmp_path / "run.tape"):
        asyncio.run(ask())
        with pytest.raises(RuntimeError, match="loop is closed"):
            asyncio.run(ask())


@both
async def test_connections_of_a_running_loop_stay(
    lib: ModuleType, provider: ProviderServer, tmp_path: Path
) -> None:
    """A service records one request after another over the same connection."""
    async with lib.AsyncClient() as client:
        for name in ("a.tape", "b.tape"):
            with record(tmp_path / name):
                await client.post(f"{provider.url}/echo", content=b"hello")
    assert provider.connections == 1
