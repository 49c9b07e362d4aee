"""Random values and ids replay; draws that are not the agent's stay real."""

from __future__ import annotations

import importlib
import os
import random
import secrets
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from os import urandom
from pathlib import Path
from random import choice, getrandbits
from random import random as luck
from uuid import uuid1, uuid4

import httpx2
import pytest

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

from ..forking import fork

SOURCES: dict[str, Callable[[], object]] = {
    "os.urandom": lambda: os.urandom(9),
    "os.urandom, bound early": lambda: urandom(300),
    "os.getrandom": lambda: os.getrandom(9),
    "uuid1": lambda: [uuid.uuid1()],
    "uuid1, bound early": lambda: [uuid1()],
    "uuid4": uuid.uuid4,
    "uuid4, bound early": uuid4,  # which needs no other name: it calls os.urandom
    "secrets": lambda: (secrets.token_urlsafe(), secrets.randbelow(10**12)),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "random": lambda: [random.random()],
    "random, bound early": lambda: [luck()],
    "choice, bound early": lambda: [choice("abcdefghij") for _ in range(20)],
    "getrandbits, bound early": lambda: getrandbits(64),
    "shuffle": lambda: random.sample(range(1000), 20),
    "gauss": lambda: random.gauss(0, 1),
    "Random()": lambda: random.Random().random(),
    "seed()": lambda: (random.seed(), random.random()),
    "mkdtemp": lambda: [made_and_removed()],
}


def made_and_removed() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return folder


@pytest.mark.parametrize("draw", SOURCES.values(), ids=SOURCES.keys())
def test_draws_of_entropy_replay(tape: Path, draw: Callable[[], object]) -> None:
    """Another recording gives other values."""
    with record(tape):
        first = [draw() for _ in range(3)]
    with replay(tape) as run:
        again = [draw() for _ in range(3)]
    assert again == first
    assert run.entropy_misses == 0
    with record(tape, overwrite=True):
        other = [draw() for _ in range(3)]
    assert not {*map(str, other)} & {*map(str, first)}
    assert len({*map(str, first)}) == 3


def test_more_draws_than_recorded_are_counted(tape: Path) -> None:
    """They get values, the same in every replay, and do not shift other draws."""

    def library(times: int) -> list[bytes]:
        return [os.urandom(4) for _ in range(times)]

    def agent(times: int) -> tuple[list[bytes], bytes]:
        return library(times), os.urandom(4)

    with record(tape):
        first = agent(1)
    with replay(tape) as run:
        again = agent(3)
    with replay(tape):
        assert agent(3) == again
    assert (again[0][0], again[1]) == (first[0][0], first[1])
    assert run.entropy_misses == 2


def test_draws_of_a_module_while_it_loads_are_no_misses(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded process may have loaded it before; its later draws count."""
    draws = "import os, time\ndef draw():\n    return os.urandom(4), time.time()\n"
    (tmp_path / "a_library.py").write_text(f"{draws}os.urandom(4), time.time()\ndraw()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with record(tape):
        pass
    with replay(tape) as run:
        library = importlib.import_module("a_library")
        assert (run.entropy_misses, run.clock_misses) == (0, 0)
        library.draw()
    assert (run.entropy_misses, run.clock_misses) == (1, 1)
    del sys.modules["a_library"]


def test_forked_children_draw_for_themselves(tape: Path) -> None:
    """Two children and their parent have three different ids."""

    def child() -> bytes:
        reading, writing = os.pipe()
        os.waitpid(fork(lambda: os.write(writing, draw())), 0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            return pipe.read()

    def draw() -> bytes:
        return uuid.uuid4().bytes + random.randbytes(8)

    with record(tape):
        first, *children, last = draw(), child(), child(), draw()
    with replay(tape) as run:
        assert draw() == first
        others = {child(), child()}
        assert draw() == last
    assert len({first, *children, last}) == 4
    assert len({first, *others, last}) == 4
    assert run.entropy_misses == 0


class DrawingTransport(httpx2.HTTPTransport):
    """A transport that draws, as masks of websockets and jitter do."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        DRAWN.append((os.urandom(8), uuid.uuid4(), random.random()))
        return super().handle_request(request)


DRAWN: list[object] = []


def test_draws_below_a_seam_are_real(tape: Path, provider: ProviderServer) -> None:
    """They do not shift the agent's draws, which replay without them."""

    def agent() -> object:
        with httpx2.Client(transport=DrawingTransport(verify=False)) as client:
            first = random.random()
            client.get(f"{provider.url}/bytes/3")
        return first, os.urandom(8), uuid.uuid4(), random.random()

    with record(tape):
        recorded = agent()
    with Tape.open(tape) as opened:
        sites = {reads.site for reads in opened.draws}
    assert not any("DrawingTransport" in site or "tracefork_core" in site for site in sites)
    with replay(tape):
        assert agent() == recorded
    assert len(DRAWN) == 1


def test_parallel_sessions_draw_from_their_own_tapes(tmp_path: Path) -> None:
    """Two threads replay two tapes at once."""
    both = threading.Barrier(2, timeout=20)

    def draw() -> object:
        return random.random(), random.gauss(0, 1), uuid.uuid4(), random.Random().random()

    drawn = {}
    for n in (1, 2):
        with record(tmp_path / f"{n}.tape"):
            drawn[n] = [draw(), draw()]

    def run(n: int) -> list[object]:
        with replay(tmp_path / f"{n}.tape"):
            both.wait()
            first = draw()
            both.wait()
            return [first, draw()]

    with ThreadPoolExecutor(2) as pool:
        jobs = {n: pool.submit(copy_context().run, run, n) for n in drawn}
        assert {n: job.result() for n, job in jobs.items()} == drawn
