"""Draws that the tape does not hold are reported with their line, and others are not."""

from __future__ import annotations

import _thread
import logging
import multiprocessing
import os
import random
import secrets
import ssl
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from os import urandom as bound_early
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest

from tracefork_core import BoundaryError, BoundaryWarning, UsageError, record, replay
from tracefork_testkit import ProviderServer


def a_raw_thread() -> None:
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(done.release, ())
    done.acquire()


ENTROPY: dict[str, Callable[[], object]] = {
    "uuid.uuid4()": lambda: uuid.uuid4(),  # noqa: PLW0108
    "uuid.uuid1()": lambda: uuid.uuid1(),  # noqa: PLW0108
    "os.urandom()": lambda: os.urandom(4),
    "random.random()": lambda: random.random(),  # noqa: PLW0108
    "random.choice()": lambda: random.choice("abc"),
    "random.shuffle()": lambda: random.shuffle([1, 2, 3]),
    "secrets.token_hex()": lambda: secrets.token_hex(4),
    "random.Random()": lambda: random.Random(),  # noqa: PLW0108
}
CLOCK: dict[str, Callable[[], object]] = {
    "time.time": lambda: time.time(),  # noqa: PLW0108
    "datetime.now": lambda: datetime.now(UTC),
    "strftime": lambda: time.strftime("%H:%M"),
}
OUTSIDE: dict[str, Callable[[], object]] = {
    "time.ctime()": lambda: time.ctime(),  # noqa: PLW0108
    "ssl.RAND_bytes()": lambda: ssl.RAND_bytes(4),
    "_thread.start_new_thread()": a_raw_thread,
    "the program true": lambda: subprocess.run(["true"], check=True),
    "the program expr": lambda: os.system("expr 0"),
    "the program test": lambda: os.spawnlp(os.P_WAIT, "test", "test"),
}

TYPED = """
import sys
from time import ctime
from tracefork_core import record
with record(sys.argv[1], boundary="note") as run:
    ctime()
print(run.leaks)
"""


def line_of(function: Callable[[], object]) -> int:
    """Return the line that a lambda draws on."""
    return function.__code__.co_firstlineno


@pytest.mark.parametrize("draw", [*ENTROPY.values(), *CLOCK.values()], ids=[*ENTROPY, *CLOCK])
def test_draws_of_a_source_that_is_off_are_reported_with_their_line(
    tape: Path, draw: Callable[[], object]
) -> None:
    """With clock=False and entropy=False, each draw is a leak, with file, line and remedy."""
    with record(tape, clock=False, entropy=False, boundary="note") as run:
        draw()
        draw()
    (leak,) = run.leaks
    assert leak.startswith(f"test_boundary.py:{line_of(draw)}: ")


@pytest.mark.parametrize("name", [*ENTROPY, *CLOCK])
def test_draws_on_the_tape_are_no_leaks(tape: Path, name: str) -> None:
    """The control: the same draws, with clock and entropy recorded."""
    with record(tape, boundary="note") as run:
        {**ENTROPY, **CLOCK}[name]()
    assert run.leaks == []


@pytest.mark.parametrize("what", OUTSIDE)
def test_draws_that_no_source_covers_are_always_reported(tape: Path, what: str) -> None:
    """Clocks and randomness in C, programs, and threads without a lane."""
    with record(tape, boundary="note") as run:
        OUTSIDE[what]()
    (leak,) = run.leaks
    assert f": {what} " in leak
    assert leak.startswith("test_boundary.py:")


def test_names_imported_before_the_session_are_watched(tape: Path) -> None:
    """`from os import urandom` is no loophole, and the name is restored afterwards."""
    before = bound_early, random.random, ssl.RAND_bytes
    with record(tape, entropy=False, boundary="note") as run:
        bound_early(3)
        assert random.random is not before[1]
    assert [leak.partition(": ")[2].split()[0] for leak in run.leaks] == ["os.urandom()"]
    assert before == (bound_early, random.random, ssl.RAND_bytes)


def test_a_warning_points_at_the_line_once(tape: Path) -> None:
    """Mode `warn` warns once for each line and thing, at that line, and the run continues."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with record(tape, clock=False, boundary="warn") as run:
            for _ in range(3):
                CLOCK["time.time"]()
            CLOCK["datetime.now"]()
    seen = [(w.category, w.filename, w.lineno) for w in caught]
    lines = [line_of(CLOCK[name]) for name in ("time.time", "datetime.now")]
    assert seen == [(BoundaryWarning, __file__, line) for line in lines]
    assert len(run.leaks) == 2


def test_an_error_cannot_be_swallowed(tape: Path) -> None:
    """Mode `raise` prevents the draw, and the block raises the error again."""
    given: list[float] = []

    @record(tape, clock=False, boundary="raise")
    def agent() -> None:
        with pytest.raises(BoundaryError):
            given.append(time.time())

    with pytest.raises(BoundaryError, match=r"test_boundary\.py:\d+: "):
        agent()
    assert given == []
    assert BoundaryError.exit_code == 7


def test_a_replay_reports_the_same_leaks(tape: Path) -> None:
    """Without a guard neither run reports any."""
    with record(tape, boundary="note") as first:
        ssl.RAND_bytes(3)
    with replay(tape, boundary="note") as again:
        ssl.RAND_bytes(3)
    with replay(tape) as silent:
        ssl.RAND_bytes(3)
    whats = [run.leaks[0].partition(": ")[2] for run in (first, again)]
    assert whats[0] == whats[1]
    assert silent.leaks == []


def test_threads_and_children_that_join_the_session_are_no_leaks(tape: Path) -> None:
    """A Python that cannot join is reported."""
    with record(tape, boundary="note") as run:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "pass"])
        threading.Thread(target=int).start()
        process = multiprocessing.get_context("fork").Process(target=int)
        process.start()
        process.join()
    assert run.leaks == []
    with record(tape, overwrite=True, boundary="note") as run:
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    assert len(run.leaks) == 1


def test_ctime_of_none_reads_the_clock(tape: Path) -> None:
    """`time.ctime(None)` is `time.ctime()`."""
    with record(tape, boundary="note") as run:
        time.ctime(None)
    (leak,) = run.leaks
    assert ": time.ctime() " in leak


def test_names_in_code_of_python_c_are_watched(tape: Path) -> None:
    """Also those that it imported before the session."""
    done = subprocess.run(
        [sys.executable, "-c", TYPED, str(tape)], capture_output=True, text=True, check=True
    )
    assert "time.ctime()" in done.stdout


def test_a_forked_child_is_not_guarded(tape: Path) -> None:
    """Its draws raise no error, and do not belong to the session."""
    reading, writing = os.pipe()
    with record(tape, boundary="raise") as run:
        if not (pid := os.fork()):
            try:
                os.write(writing, ssl.RAND_bytes(3))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert len(pipe.read()) == 3
    assert run.leaks == []


def test_a_generator_with_a_seed_is_no_leak(tape: Path) -> None:
    """It gives the same values in every run."""
    with record(tape, entropy=False, boundary="note") as run:
        random.Random(3).random()
        random.Random(x=4)
        time.ctime(0)
    assert run.leaks == []


def test_draws_of_libraries_for_themselves_are_not_reported(
    tape: Path, provider: ProviderServer
) -> None:
    """Real SDKs, retries, streams and a logger, with nothing on the tape."""
    hello = [{"role": "user", "content": "@fail 429 1\n@say hello"}]
    http = httpx2.Client(verify=False)
    with record(tape, clock=False, entropy=False, boundary="raise") as run:
        gpt = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none", http_client=http)
        gpt.chat.completions.create(model="gpt-5", messages=hello)
        for _ in gpt.chat.completions.create(model="gpt-5", messages=hello, stream=True):
            pass
        claude = anthropic.Anthropic(base_url=provider.url, api_key="none")
        claude.messages.create(model="claude", max_tokens=9, messages=hello)
        logging.getLogger("agent").warning("a record has its time")
    assert run.leaks == []


def test_an_unknown_mode_is_refused(tape: Path) -> None:
    """A misspelled mode is an error before anything runs."""
    with pytest.raises(UsageError):
        record(tape, boundary="warm")  # type: ignore[arg-type]
