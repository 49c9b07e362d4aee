"""A program that ends itself by `os._exit`: what came of its run is told before it is gone.

Nothing else of Python's end is done then: no thread is joined, and no exit handler runs. A program
that becomes another one by `os.exec…` starts that instead and ends as it does: it is part of the
run as any other process.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn, TypeVar

from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TraceforkError

_KILLED = 128
"""What a shell adds to the number of the signal that ended a program."""

R = TypeVar("R")
Outcome = Callable[[], tuple[R, Ending]]
"""Returns a run that has ended and how its agent did, or raises what the run came to."""


@contextmanager
def told_before_it_leaves(
    scope: AbstractContextManager[R], run: R, told: Callable[[Outcome[R]], int]
) -> Iterator[None]:
    """Close `scope` and have `told` say what came of it where this process is ended in between.

    It exits with the code that `told` returns, which may be called from any thread.
    """
    leave, process = os._exit, os.getpid()

    def tell_and_leave(status: int) -> NoReturn:
        if os.getpid() == process:  # Forked children have an end of their own.
            os._exit = leave
            status = _said(told, lambda: _closed(scope, run, status))
        leave(status)

    execv, execve = os.execv, os.execve

    def become(path: Any, words: Any, environment: Any = None) -> NoReturn:
        if os.getpid() == process:
            status = subprocess.Popen(  # noqa: S603 - what the agent would become
                words, executable=path, env=environment, close_fds=False
            ).wait()
            os._exit(status if status >= 0 else _KILLED - status)
        if environment is None:
            execv(path, words)
        execve(path, words, environment)

    os._exit, os.execv = tell_and_leave, become
    os.execve = become  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit, os.execv, os.execve = leave, execv, execve


def _closed(scope: AbstractContextManager[R], run: R, status: int) -> tuple[R, Ending]:
    ending = Ending.of(SystemExit(status))
    error = ending.error
    scope.__exit__(None if error is None else type(error), error, None)
    return run, ending


def _said(told: Callable[[Outcome[R]], int], outcome: Outcome[R]) -> int:
    try:
        return told(outcome)
    except TraceforkError as error:
        message = str(error).removeprefix("tracefork: ")
        screen.stderr().print(f"✗ {printable(message, lines=True)}", soft_wrap=True)
        return error.exit_code
