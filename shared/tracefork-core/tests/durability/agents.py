"""Agents that report what they have seen, each in a process that may be killed at any moment.

This reads commands from stdin, one JSON document per line, and forks a child for each. A fork is a
fresh process without the start-up time of an interpreter. The reports of children go to stdout.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import mmap
import os
import random
import resource
import signal
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import anyio  # noqa: F401 - loaded once here, not in every child
import httpcore2  # noqa: F401
import httpx2
import time_machine  # noqa: F401

from tracefork_core import record, replay
from tracefork_core.tape import TapeWriter

STREAM = "/chunked?n=6&delay=0.001"


def say(**what: object) -> None:
    """Write a line with one system call, so that it is there completely or not at all."""
    os.write(1, json.dumps(what).encode() + b"\n")


def saw(query: str, data: bytes, *, whole: bool) -> None:
    say(query=query, size=len(data), sha=hashlib.sha256(data).hexdigest(), whole=whole)


def question(i: int) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": f"question {i}"}]
    return f"/v1/chat/completions?i={i}", {"model": "m", "messages": messages}


def ask(client: httpx2.Client, url: str, i: int) -> None:
    query, body = question(i)
    saw(query, client.post(url + query, json=body).content, whole=True)


def one_by_one(url: str) -> None:
    with httpx2.Client(verify=False) as client:
        for i in itertools.count():
            ask(client, url, i)


def three_then_wait(url: str) -> None:
    with httpx2.Client(verify=False) as client:
        for i in range(3):
            ask(client, url, i)
        signal.pause()


def large_ones(url: str) -> None:
    with httpx2.Client(verify=False) as client:
        for i in range(20):
            noise = random.Random(i).randbytes(20_000).hex()
            answer = client.post(f"{url}/echo?i={i}", json={"text": noise})
            saw(f"/echo?i={i}", answer.content, whole=True)


def fill_the_disk(limit: int) -> None:
    """Cause the error of a full disk: limit the size of files."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def large_ones_on_a_full_disk(url: str) -> None:
    fill_the_disk(150_000)
    large_ones(url)


def a_disk_too_full_for_the_journal(url: str) -> None:
    """The journal cannot take a request of this size, though the tape could take all of it."""
    fill_the_disk(300_000)
    with httpx2.Client(verify=False) as client:
        for i in range(3):
            answer = client.post(f"{url}/echo?i={i}", content=b"x" * 400_000)
            saw(f"/echo?i={i}", answer.content, whole=True)


def a_disk_full_at_the_end(url: str) -> None:
    large_ones(url)
    fill_the_disk(1_000)


def gathered(url: str) -> None:
    async def ask_async(client: httpx2.AsyncClient, i: int) -> None:
        query, body = question(i)
        saw(query, (await client.post(url + query, json=body)).content, whole=True)

    async def run() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            for first in itertools.count(step=5):
                await asyncio.gather(*(ask_async(client, first + i) for i in range(5)))

    asyncio.run(run())


def streamed(url: str) -> None:
    with httpx2.Client(verify=False) as client:
        for i in itertools.count():
            query, seen = f"{STREAM}&i={i}", b""
            with client.stream("GET", url + query) as response:
                for chunk in response.iter_raw():
                    seen += chunk
                    saw(query, seen, whole=False)
            saw(query, seen, whole=True)


def threaded(url: str) -> None:
    with httpx2.Client(verify=False) as client, ThreadPoolExecutor(4) as pool:
        for first in itertools.count(step=8):
            list(pool.map(lambda i: ask(client, url, i), range(first, first + 8)))


def with_aiohttp(url: str) -> None:
    async def ask_async(session: aiohttp.ClientSession, i: int) -> None:
        query, body = question(i)
        async with session.post(url + query, json=body) as response:
            saw(query, await response.read(), whole=True)

    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            for first in itertools.count(step=3):
                await asyncio.gather(*(ask_async(session, first + i) for i in range(3)))

    asyncio.run(run())


def three(url: str) -> None:
    with httpx2.Client(verify=False) as client:
        for i in range(3):
            ask(client, url, i)


def many(url: str) -> None:
    """Make so many requests that several segments are packed at the end."""
    with httpx2.Client(verify=False) as client:
        for i in range(40):
            ask(client, url, i)


AGENTS = {
    agent.__name__: agent
    for agent in (
        one_by_one,
        three_then_wait,
        gathered,
        streamed,
        threaded,
        large_ones,
        large_ones_on_a_full_disk,
        a_disk_too_full_for_the_journal,
        a_disk_full_at_the_end,
        with_aiohttp,
        three,
        many,
    )
}


def die_in_close(at: int) -> None:
    """End this process just before the n-th call to a file that closing a tape makes.

    After the last call, report how many there are.
    """
    count, close = 0, TapeWriter.close

    def called(frame: FrameType, event: str, function: Any) -> None:
        nonlocal count
        if event == "c_call" and touches_a_file(function):
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    def dying(writer: TapeWriter, *given: Any) -> Any:
        sys.setprofile(called)
        try:
            return close(writer, *given)
        finally:
            sys.setprofile(None)
            say(points=count)

    TapeWriter.close = dying  # type: ignore[method-assign, assignment]


def touches_a_file(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(owner, sqlite3.Connection | mmap.mmap) or owner is sys.modules["posix"]


def give_rights_up() -> None:
    """Become a user without root's right to ignore file permissions."""
    if os.geteuid() == 0:
        os.seteuid(65534)


def run(
    verb: str, agent: str, url: str, tape: str, die_at: int | None = None, *, weak: bool = False
) -> None:
    """Run an agent under a session, and report how it ended."""
    say(pid=os.getpid())
    if weak:
        give_rights_up()
    if die_at is not None:
        die_in_close(die_at)
    try:
        with record(Path(tape)) if verb == "record" else replay(Path(tape)):
            say(began=True)
            AGENTS[agent](url)
            say(closing=True)
    except Exception as error:
        say(error=type(error).__name__, message=str(error))


def commands() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    for command in commands():
        child = os.fork()
        if not child:
            stays = command.pop("stays", False)
            run(**command)
            if stays:  # Whoever kills it later kills it, and no other process of its number.
                signal.pause()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(ended=status)


if __name__ == "__main__":
    main()
