"""What draws past the tape is named with its line, and what does not is left alone."""

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
    "the program false": lambda: os.system("false"),
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
def test_what_is_switched_off_is_named_where_it_is_drawn(
    tape: Path, draw: Callable[[], object]
) -> None:
    """Without clock and entropy on the tape each read is a leak, with file, line and fix."""
    with record(tape, clock=False, entropy=False, boundary="note") as run:
        draw()
        draw()
    (leak,) = run.leaks
    assert leak.startswith(f"test_boundary.py:{line_of(draw)}: ")
    assert "was switched off" in leak


@pytest.mark.parametrize("name", [*ENTROPY, *CLOCK])
def test_what_is_on_the_tape_is_no_leak(tape: Path, name: str) -> None:
    """The control: with clock and entropy on the tape nothing is said of the same draws."""
    with record(tape, boundary="note") as run:
        {**ENTROPY, **CLOCK}[name]()
    assert run.leaks == []


@pytest.mark.parametrize("what", OUTSIDE)
def test_what_no_source_covers_is_named_always(tape: Path, what: str) -> None:
    """Clocks and chance in C, programs, and threads without a lane are leaks of any recording."""
    with record(tape, boundary="note") as run:
        OUTSIDE[what]()
    (leak,) = run.leaks
    assert f": {what} " in leak
    assert leak.startswith("test_boundary.py:")


def test_names_bound_early_are_watched_and_given_back(tape: Path) -> None:
    """`from os import urandom` before the session is no way around, and is undone after it."""
    before = bound_early, random.random, ssl.RAND_bytes
    with record(tape, entropy=False, boundary="note") as run:
        bound_early(3)
        assert random.random is not before[1]
    assert [leak.partition(": ")[2].split()[0] for leak in run.leaks] == ["os.urandom()"]
    assert before == (bound_early, random.random, ssl.RAND_bytes)


def test_a_warning_points_at_the_line_once(tape: Path) -> None:
    """warn warns once for each line and thing, at the line, and the run goes on."""
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
    """raise stops the draw before it is made, and the block raises it again."""
    given: list[float] = []

    @record(tape, clock=False, boundary="raise")
    def agent() -> None:
        with pytest.raises(BoundaryError):
            given.append(time.time())

    with pytest.raises(BoundaryError, match=r"test_boundary\.py:\d+: a read of the clock"):
        agent()
    assert given == []
    assert BoundaryError.exit_code == 7


def test_a_replay_is_guarded_alike(tape: Path) -> None:
    """What a recording names, its replay names too; without a guard neither says anything."""
    with record(tape, boundary="note") as first:
        ssl.RAND_bytes(3)
    with replay(tape, boundary="note") as again:
        ssl.RAND_bytes(3)
    with replay(tape) as silent:
        ssl.RAND_bytes(3)
    whats = [run.leaks[0].partition(": ")[2] for run in (first, again)]
    assert whats[0] == whats[1]
    assert silent.leaks == []


def test_what_joins_the_session_is_no_leak(tape: Path) -> None:
    """Threads, forks and Python children are of the run; a Python that cannot join is named."""
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


def test_none_in_place_of_a_time_reads_the_clock(tape: Path) -> None:
    """`time.ctime(None)` is `time.ctime()`."""
    with record(tape, boundary="note") as run:
        time.ctime(None)
    (leak,) = run.leaks
    assert ": time.ctime() reads the clock" in leak


def test_names_of_a_typed_script_are_watched(tape: Path) -> None:
    """What `python -c` bound for itself before the session is no way around either."""
    done = subprocess.run(
        [sys.executable, "-c", TYPED, str(tape)], capture_output=True, text=True, check=True
    )
    assert "time.ctime() reads the clock" in done.stdout


def test_a_forked_child_is_not_guarded(tape: Path) -> None:
    """Its draws run into no error, and are none of the session's."""
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


def test_a_seed_is_no_leak(tape: Path) -> None:
    """Generators with a seed draw alike in every run."""
    with record(tape, entropy=False, boundary="note") as run:
        random.Random(3).random()
        random.Random(x=4)
        time.ctime(0)
    assert run.leaks == []


def test_what_libraries_draw_for_themselves_is_not_looked_at(
    tape: Path, provider: ProviderServer
) -> None:
    """Real SDKs, retries, streams and a logger give no alarm, though nothing is on the tape."""
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


def test_a_mode_that_does_not_exist_is_refused(tape: Path) -> None:
    """A misspelled mode is an error before anything runs, not a guard that guards nothing."""
    with pytest.raises(UsageError, match="no boundary 'warm'"):
        record(tape, boundary="warm")  # type: ignore[arg-type]
