"""Agents, and how each is changed between its recording and a replay that must not be proven.

An agent takes the URL of a provider and a twist; without a twist it does the same each time. A
table lists the twists of each agent.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from threading import Thread
from typing import Any

import httpx2

from tracefork_core import tool

Agent = Callable[[str, str], object]
TWISTS: dict[str, tuple[Agent, tuple[str, ...]]] = {}
"""By name: each agent, and its twists."""
CHILD = """
import sys, httpx2
httpx2.Client(verify=False).post(sys.argv[1] + "/echo", content=sys.argv[2])
"""
FILE = Path(gettempdir()) / f"tracefork-wrong-replays-{os.getpid()}.txt"


def twisted(*twists: str) -> Callable[[Agent], Agent]:
    """Put an agent into the table, with the twists that it knows."""

    def put(agent: Agent) -> Agent:
        TWISTS[agent.__name__.replace("_", " ")] = agent, twists
        return agent

    return put


def client(url: str) -> httpx2.Client:
    return httpx2.Client(verify=False, base_url=url, timeout=20)


REQUEST: dict[str, Any] = {
    "method": "POST",
    "url": "/echo/a?b=1&c=2",
    "content": b'{"model": "m", "n": 1}',
    "headers": [
        ("accept", "application/json"),
        ("anthropic-beta", "one"),
        ("anthropic-beta", "two"),
        ("anthropic-version", "2023"),
    ],
}
HEADERS = REQUEST["headers"]
CHANGED: dict[str, dict[str, object]] = {
    "a byte of the body": {"content": b'{"model": "m", "n": 2}'},
    "the order of keys": {"content": b'{"n": 1, "model": "m"}'},
    "a space": {"content": b'{"model": "m", "n":1}'},
    "no body": {"content": b""},
    "the method": {"method": "PUT"},
    "the path": {"url": "/echo/A?b=1&c=2"},
    "the query": {"url": "/echo/a?b=1&c=3"},
    "the order of the query": {"url": "/echo/a?c=2&b=1"},
    "the value of a header": {"headers": [*HEADERS[:3], ("anthropic-version", "2024")]},
    "a header less": {"headers": HEADERS[:3]},
    "a header more": {"headers": [*HEADERS, ("openai-beta", "x")]},
    "a repeated header less": {"headers": [HEADERS[0], *HEADERS[2:]]},
    "the order of a repeated header": {"headers": [HEADERS[0], HEADERS[2], HEADERS[1], HEADERS[3]]},
}


@twisted(*CHANGED)
def a_request(url: str, twist: str) -> object:
    with client(url) as http:
        return http.request(**{**REQUEST, **CHANGED.get(twist, {})}).content


ORDERS = {
    "the last is missing": "one two one",
    "the first is missing": "two one three",
    "one in the middle is missing": "one two three",
    "none at all": "",
    "one more": "one two one three four",
    "the last once more": "one two one three three",
    "one more in the middle": "one two two one three",
    "two change places": "two one one three",
    "the last two change places": "one two three one",
}


@twisted(*ORDERS, "the last after an error", "stopped by an error", "an exit instead of the last")
def a_loop(url: str, twist: str) -> object:
    with client(url) as http:
        for word in ORDERS.get(twist, "one two one three").split():
            if word == "three" and twist == "an exit instead of the last":
                raise SystemExit(0)
            if word == "three" and twist == "the last after an error":
                with suppress(httpx2.HTTPError):
                    http.get("/status/500").raise_for_status()
            http.post("/echo", content=word)
    if twist == "stopped by an error":
        raise KeyError(twist)
    return None


READ = {"": 3, "one chunk": 1, "no chunk": 0, "one chunk more": 4, "all chunks": None}


def _read(url: str, upto: int | None) -> list[bytes]:
    with client(url) as http, http.stream("GET", "/chunked?n=5") as answer:
        pieces = answer.iter_raw()
        return list(pieces) if upto is None else [next(pieces) for _ in range(upto)]


@twisted(*[twist for twist in READ if twist])
def a_stream_that_is_left(url: str, twist: str) -> object:
    return _read(url, READ[twist])


@twisted("one chunk less", "only the first", "only the head")
def a_stream_to_its_end(url: str, twist: str) -> object:
    return _read(url, {"one chunk less": 4, "only the first": 1, "only the head": 0}.get(twist))


@twisted("only the head")
def a_body_of_known_length(url: str, twist: str) -> object:
    with client(url) as http, http.stream("GET", "/bytes/9") as answer:
        return None if twist else answer.read()


def _in_thread(work: Callable[..., object], *args: object) -> None:
    def run() -> None:
        with suppress(Exception):  # The session raises it again at its end.
            work(*args)

    run.__name__ = work.__name__
    thread = Thread(target=run)
    thread.start()
    thread.join()


@twisted(
    "they swap their work",
    "one works in the main thread",
    "one works for both",
    "a third thread works for one",
    "the main thread's work is in a thread",
    "one starts another for its work",
)
def two_threads(url: str, twist: str) -> None:
    with client(url) as http:

        def ask(*words: str) -> None:
            for word in words:
                http.post("/echo", content=word)

        def nested(*words: str) -> None:
            _in_thread(ask, *words)

        jobs: list[tuple[str, ...]] = [("one", "two"), ("three",)]
        match twist:
            case "they swap their work":
                jobs.reverse()
            case "one works for both":
                jobs = [("one", "two", "three"), ()]
            case "a third thread works for one":
                jobs = [("one", "two"), (), ("three",)]
        for number, job in enumerate(jobs):
            if number == 0 and twist == "one works in the main thread":
                ask(*job)
            elif number == 0 and twist == "one starts another for its work":
                _in_thread(nested, *job)
            else:
                _in_thread(ask, *job)
        if twist == "the main thread's work is in a thread":
            _in_thread(ask, "four")
        else:
            ask("four")


@twisted("they swap their work", "both work in one", "one works in the main thread")
def jobs_of_a_pool(url: str, twist: str) -> None:
    words = {"they swap their work": ["two", "one"], "both work in one": ["one two"]}
    with client(url) as http, ThreadPoolExecutor(1) as pool:

        def ask(job: str) -> None:
            for word in job.split():
                http.post("/echo", content=word)

        for word in words.get(twist, ["one", "two"]):
            if word == "two" and twist == "one works in the main thread":
                ask(word)
            else:
                pool.submit(ask, word).exception()


@twisted(
    "they swap their work",
    "one after the other in the main task",
    "one starts a task for its work",
    "another order in one",
)
def two_tasks(url: str, twist: str) -> None:
    async def main() -> None:
        async with httpx2.AsyncClient(verify=False, base_url=url, timeout=20) as http:

            async def ask(*words: str) -> None:
                for word in words:
                    await http.post("/echo", content=word)

            async def nested(*words: str) -> None:
                await asyncio.create_task(ask(*words))

            jobs: list[tuple[str, ...]] = [("one", "two"), ("three",)]
            match twist:
                case "they swap their work":
                    jobs.reverse()
                case "another order in one":
                    jobs[0] = ("two", "one")
            if twist == "one after the other in the main task":
                for job in jobs:
                    await ask(*job)
            else:
                first = nested if twist == "one starts a task for its work" else ask
                rest = [ask(*job) for job in jobs[1:]]
                await asyncio.gather(first(*jobs[0]), *rest)

    asyncio.run(main())


@tool(effect="write")
def pay(amount: object, to: str = "shop") -> object:
    return [amount, to]


@tool
def refund(amount: object, to: str = "shop") -> object:
    return [amount, to]


@tool
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


CALLS: dict[str, Callable[[], object]] = {
    "": lambda: [pay(1), refund(2), list(count(3))],
    "another argument": lambda: [pay(2), refund(2), list(count(3))],
    "a text for a number": lambda: [pay("1"), refund(2), list(count(3))],
    "a float for a number": lambda: [pay(1.0), refund(2), list(count(3))],
    "true for one": lambda: [pay(amount=True), refund(2), list(count(3))],
    "a keyword": lambda: [pay(1, to="me"), refund(2), list(count(3))],
    "twice": lambda: [pay(1), pay(1), refund(2), list(count(3))],
    "never": lambda: [refund(2), list(count(3))],
    "another order": lambda: [refund(2), pay(1), list(count(3))],
    "the other tool": lambda: [refund(1), pay(2), list(count(3))],
    "a value less": lambda: [pay(1), refund(2), next(count(3))],
    "no value": lambda: [pay(1), refund(2), count(3)],
}


@twisted(*[twist for twist in CALLS if twist])
def calls_of_tools(url: str, twist: str) -> object:
    return CALLS[twist]()


@twisted(
    "a random number more",
    "another distribution",
    "an id more",
    "a later time",
    "a number of its own",
    "a line less",
    "another line",
    "a variable",
    "a word of the command line",
    "a file",
)
def what_is_around(url: str, twist: str) -> object:
    """The agent sends what it draws and reads."""
    sys.stdin.seek(0)
    os.environ["TRACEFORK_WRONG"] = "2" if twist == "a variable" else "1"
    FILE.write_text("2" if twist == "a file" else "1")
    words = ["now"] if twist == "a word of the command line" else []
    if twist == "a random number more":
        random.random()
    if twist == "an id more":
        uuid.uuid4()
    if twist == "a later time":
        time.time()
    if twist == "another line":
        sys.stdin.readline()
    lines = [sys.stdin.readline() for _ in range(1 if twist == "a line less" else 2)]
    text = [
        random.gauss(0, 1) if twist == "another distribution" else random.random(),
        uuid.uuid4(),
        time.time(),
        os.getpid() + time.monotonic() if twist == "a number of its own" else 0,
        *lines,
        os.environ["TRACEFORK_WRONG"],
        *words,
        FILE.read_text(),
    ]
    FILE.unlink()
    with client(url) as http:
        return http.post("/echo", content=repr(text)).content


@twisted("they swap their work", "one works in the parent")
def two_processes(url: str, twist: str) -> object:
    for job in ["two", "one"] if twist == "they swap their work" else ["one", "two"]:
        if job == "one" and twist == "one works in the parent":
            with client(url) as http:
                http.post("/echo", content=job)
        else:
            words = [sys.executable, "-c", CHILD, url, job]
            subprocess.run(words, check=False, capture_output=True)
    return None


@twisted("4", "0", "no exit", "an error")
def an_exit_with_3(url: str, twist: str) -> None:
    _end(url, twist or "3")


@twisted("no error", "3", "a text")
def an_error(url: str, twist: str) -> None:
    _end(url, twist or "an error")


def _end(url: str, how: str) -> None:
    with client(url) as http:
        http.post("/echo", content="one")
    match how:
        case "an error":
            raise KeyError(how)
        case "a text":
            raise SystemExit(how)
        case _ if how.isdecimal():
            raise SystemExit(int(how))
