"""Programs that uvloop starts: it forks by itself, while nobody else can run.

uvloop is installed in one environment, for this file.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from pathlib import Path

import httpx2
import uvloop

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

HELD_UP = 10
"""Seconds; a child that asked its parent something would wait for twenty."""


async def start() -> int:
    """Start a program, and wait for its end."""
    async with asyncio.timeout(HELD_UP):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")
        return await process.wait()


def test_a_program_that_uvloop_starts_waits_for_nobody(tmp_path: Path) -> None:
    """Its parent is locked until it is that program, and could answer nothing."""
    for scope in (record, replay):
        with scope(tmp_path / "run.tape"):
            assert uvloop.run(start()) == 0


def ask(url: str) -> None:
    """Ask from a child process."""
    httpx2.get(f"{url}/echo").raise_for_status()


async def fork(url: str) -> int | None:
    """Fork as Python does it, on the loop."""
    child = multiprocessing.get_context("fork").Process(target=ask, args=(url,))
    child.start()
    await asyncio.to_thread(child.join)
    return child.exitcode


def test_a_child_that_is_forked_there_belongs_to_the_run(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """Python's own forks on uvloop join the session as elsewhere."""
    path = tmp_path / "run.tape"
    with record(path):
        assert uvloop.run(fork(provider.url)) == 0
    with Tape.open(path) as tape:
        assert len(tape.exchanges) == 1
    with replay(path):
        assert uvloop.run(fork(provider.url)) == 0
    assert len(provider.requests) == 1
