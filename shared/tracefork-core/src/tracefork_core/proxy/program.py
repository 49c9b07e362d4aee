"""Run the command whose calls go through the proxy, and end it when tracefork is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.current import outside

_PATIENCE = 5.0
"""Seconds that the command has to end after a signal."""
_KILLED = 128
"""A shell reports a program that a signal killed with this status plus the signal's number."""


class _StoppedError(BaseException):
    """A signal has arrived that ends the proxy."""


def run(words: Sequence[str], environment: Mapping[str, str], session: Session) -> int:
    """Run a command with more environment variables, and return its status as a shell would.

    Ctrl-C and SIGTERM are passed on to the command. After Ctrl-C, KeyboardInterrupt is raised once
    the command has ended.

    Raises:
        UsageError: there is no such command.
    """
    try:
        process = subprocess.Popen(words, env={**os.environ, **environment})  # noqa: S603 - the user's own command
    except OSError as error:
        raise UsageError(f"tracefork: cannot run {words[0]}: {error.strerror}.") from error
    _rest(session)
    with _terminated_with(process):
        try:
            status = Context().run(_wait, process)
        except KeyboardInterrupt:
            # A terminal has sent it to the command, too. A second one does no harm.
            _end(process, signal.SIGINT)
            raise
    return status if status >= 0 else _KILLED - status


def until_stopped(session: Session, ready: Callable[[], None]) -> None:
    """Call `ready`, and wait until Ctrl-C or SIGTERM."""
    _rest(session)

    def stop(number: int, frame: object) -> None:
        raise _StoppedError  # An event could not be set here: this thread may hold its lock.

    with suppress(_StoppedError), _handler(stop, signal.SIGINT, signal.SIGTERM), outside():
        ready()
        while True:
            signal.pause()


def _rest(session: Session) -> None:
    """Take this thread out of the run: all that it does from here on is wait.

    A delivery waits until the threads of a run are at rest, and to look costs a millisecond.
    """
    session.threads.discard(threading.get_native_id())


def _wait(process: subprocess.Popen[bytes], seconds: float | None = None) -> int:
    with outside():
        return process.wait(seconds)


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    for last in (number, signal.SIGTERM):
        with suppress(ProcessLookupError):
            process.send_signal(last)
        with suppress(subprocess.TimeoutExpired):
            Context().run(_wait, process, _PATIENCE)
            return
    process.kill()
    Context().run(_wait, process)


@contextmanager
def _terminated_with(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass SIGTERM on: the command ends, and the tape is written as at any other end."""

    def pass_on(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            process.terminate()

    with _handler(pass_on, signal.SIGTERM):
        yield


@contextmanager
def _handler(handle: object, *numbers: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
