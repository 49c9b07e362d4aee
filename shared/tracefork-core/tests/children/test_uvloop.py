"""Programs that uvloop starts: it forks by itself, while the interpreter lock is held.

uvloop is installed in one environment, for this file.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from pathlib import Path

import httpx2
import uvloop

from tracefork_core import Tape, record, replay, tool
from tracefork_testkit import ProviderServer

HELD_UP = 10
"""Seconds; a child that called its parent would wait for twenty."""


async def start() -> int:
    """Start a program and wait for its end."""
    async with asyncio.timeout(HELD_UP):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")
        return await process.wait()


def test_a_program_started_by_uvloop_does_not_wait_for_its_parent(tmp_path: Path) -> None:
    """The parent is locked until the child's exec and could not answer it."""

    @tool(effect="read")
    def look_up() -> str:
        return "found"

    for scope in (record, replay):
        with scope(tmp_path / "run.tape"):
            look_up()  # Of a tape without any exchange nothing is proven.
            assert uvloop.run(start()) == 0


def ask(url: str) -> None:
    """Make a request from a child process."""
    httpx2.get(f"{url}/echo").raise_for_status()


async def fork(url: str) -> int | None:
    """Call `os.fork` on the event loop."""
    child = multiprocessing.get_context("fork").Process(target=ask, args=(url,))
    child.start()
    await asyncio.to_thread(child.join)
    return child.exitcode


def test_a_child_forked_on_uvloop_belongs_to_the_run(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """Python's own forks join the session on uvloop too."""
    path = tmp_path / "run.tape"
    with record(path):
        assert uvloop.run(fork(provider.url)) == 0
    with Tape.open(path) as tape:
        assert len(tape.exchanges) == 1
    with replay(path):
        assert uvloop.run(fork(provider.url)) == 0
    assert len(provider.requests) == 1
