"""After a block the process is as before, however the block ended."""

from __future__ import annotations

import datetime as dt
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import httpx2
import pytest

from tracefork_core import TapeError, UsageError, record, replay
from tracefork_core.exchange.current import current_session
from tracefork_testkit import ProviderServer


def surroundings() -> dict[str, object]:
    """Return everything in the process that a session changes."""
    classes = {
        f"{lib.__name__}.{name}": dict(vars(getattr(lib, name)))
        for lib in (httpx, httpx2)
        for name in ("Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport")
    }
    return {
        **classes,
        "environ": dict(os.environ),
        "reads": (*vars(type(os.environ)).values(), os.getcwd, socket.gethostname, platform.node),
        "popen": subprocess.Popen.__init__,
        "meta_path": list(sys.meta_path),
        "time": (time.time, time.time_ns, time.gmtime, dt.datetime, dt.date),
        "threads": set(threading.enumerate()),
        "session": current_session(),
    }


def answered(tape: Path) -> None:
    with ProviderServer() as provider, httpx2.Client(verify=False) as client:
        with record(tape):
            client.get(f"{provider.url}/bytes/1")
        with replay(tape):
            client.get(f"{provider.url}/bytes/1")


def raised_inside(tape: Path) -> None:
    with suppress(ZeroDivisionError), record(tape):
        raise ZeroDivisionError


def the_tape_exists(tape: Path) -> None:
    tape.touch()
    with pytest.raises(UsageError, match="exists"), record(tape):
        pass


def no_such_tape(tape: Path) -> None:
    with pytest.raises(UsageError), replay(tape):
        pass


def not_a_tape(tape: Path) -> None:
    tape.write_text("words")
    with pytest.raises(TapeError, match="not a tape"), replay(tape):
        pass


def no_such_matcher(tape: Path) -> None:
    with record(tape):
        pass
    with pytest.raises(UsageError, match="psychic"), replay(tape, match=["psychic"]):
        pass


def the_tape_was_removed(tape: Path) -> None:
    with pytest.raises(TapeError), record(tape):
        tape.unlink()


def nested(tape: Path) -> None:
    with record(tape), suppress(ZeroDivisionError), record(tape.with_name("inner.tape")):
        raise ZeroDivisionError


CASES = [
    answered,
    raised_inside,
    the_tape_exists,
    no_such_tape,
    not_a_tape,
    no_such_matcher,
    the_tape_was_removed,
    nested,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_session_restores_everything_it_changed(tape: Path, case: Callable[[Path], None]) -> None:
    """Environment, subprocess, HTTP classes, clock and current session."""
    before = surroundings()
    case(tape)
    after = surroundings()
    assert {name: after[name] for name in before if after[name] != before[name]} == {}
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 5


def test_a_failing_start_leaves_no_session_behind(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the guard cannot start, the tape stays incomplete and the next run works."""
    before = surroundings()
    with monkeypatch.context() as patched:
        patched.setattr("tracefork_core.egress.guard._install_once", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError), record(tape):
            raise AssertionError("it started")
    assert surroundings() == before
    with record(tape, overwrite=True) as run:
        http.get(f"{provider.url}/bytes/1")
    assert run.receipt is not None
    assert run.receipt.exchanges == 1


def test_inside_a_block_the_process_differs(tape: Path) -> None:
    """The negative control: the comparison sees what a session changes."""
    before = surroundings()
    with record(tape, scope="process"):
        inside = surroundings()
    changed = {name for name in before if inside[name] != before[name]}
    assert {"environ", "popen", "httpx2.Client", "httpx.AsyncClient", "session"} <= changed
