"""Fixtures of all core tests: a path for a tape, a client, and a limit on waiting."""

from __future__ import annotations

import faulthandler
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, Protocol

import httpx2
import pytest
from pyrage import x25519

from tracefork_core import Tape
from tracefork_core.tape import journal
from tracefork_core.tape.log import LogReader, LogWriter

PATIENCE = 110


@pytest.fixture(autouse=True, scope="session")
def _no_terminal_of_whoever_tests() -> None:
    """Hide the terminal's width and colours, which change the output of commands."""
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"):
        os.environ.pop(name, None)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Return the path of a tape that does not exist yet."""
    return tmp_path / "run.tape"


@pytest.fixture
def own_key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set an age key, and return its public part: a passphrase takes a second to derive."""
    identity = x25519.Identity.generate()
    file = tmp_path_factory.mktemp("key") / "identity"
    file.write_text(str(identity))
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(file))
    return str(identity.to_public())


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    """Open an httpx2 client that loads no certificates."""
    with httpx2.Client(verify=False, timeout=20) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_hangs() -> Iterator[None]:
    """Fail a test after two minutes, with the stack of every thread."""

    def give_up(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr)
        pytest.fail(f"still running after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Alter(Protocol):
    """Rewrites a tape with other events or bodies, as an attacker would."""

    def __call__(
        self,
        tape: Path,
        *,
        events: Callable[[bytes], bytes] = ...,
        bodies: Callable[[bytes], bytes] = ...,
    ) -> None: ...


def alter_tape(
    tape: Path,
    *,
    events: Callable[[bytes], bytes] = lambda line: line,
    bodies: Callable[[bytes], bytes] = lambda data: data,
) -> None:
    """Change each event (a line of JSON) or each segment's bodies, as an attacker would."""
    with closing(sqlite3.connect(tape)) as db, db:
        log = LogReader(db)
        found = [(lines, log.bodies(segment)) for segment, lines in log.segments()]
        db.execute("DELETE FROM log")
        db.execute("DELETE FROM meta WHERE key = 'checksum'")
        writer = LogWriter(db)
        for lines, data in found:
            changed = b"".join(events(line) for line in lines.splitlines(keepends=True))
            writer.append(changed, [bodies(data)])
            writer.pack()


@pytest.fixture
def alter() -> Alter:
    """Return a function that changes each event or each segment's bodies."""
    return alter_tape


@pytest.fixture
def written() -> Callable[[Path], bytes]:
    """Return a function that returns all bytes in the files of a tape, packed and unpacked."""

    def written(tape: Path) -> bytes:
        parts = [file.read_bytes() for file in sorted(tape.parent.iterdir())]
        with Tape.open(tape) as opened:
            for event in opened.events:
                parts += [event.kind.encode(), bytes(event.payload), bytes(event.aside)]
            parts += [opened.blob(sha) for sha in opened.blobs]
        for flight in journal.read(tape):
            parts += [flight.payload, flight.aside, flight.body]
            parts += [data for _, data in flight.chunks]
        return b"\n".join(parts)

    return written


@pytest.fixture
def elder() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Return a function that calls another in a thread older than any session."""
    jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    def serve() -> None:
        for job, future in iter(jobs.get, None):
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

    def call(job: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        jobs.put((job, future))
        return future.result(10)

    worker = threading.Thread(target=serve)
    worker.start()
    yield call
    jobs.put(None)
    worker.join()
