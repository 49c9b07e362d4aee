"""Close the session and report the result before an agent ends its process with `os._exit`.

As in Python, no thread is joined then and no exit handler runs. An agent that replaces itself with
`os.exec…` starts the other program as a child process instead, so that it is part of the run, and
exits with its status.
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
"""A shell reports a program that a signal killed with this status plus the signal's number."""

R = TypeVar("R")
Outcome = Callable[[], tuple[R, Ending]]
"""Closes the scope; returns the run and the agent's ending, or raises the error of the scope."""


@contextmanager
def told_before_it_leaves(
    scope: AbstractContextManager[R], run: R, told: Callable[[Outcome[R]], int]
) -> Iterator[None]:
    """If the block ends this process, close `scope` and call `told` to report the result first.

    The process then exits with the code that `told` returns. `told` may be called from any thread.
    """
    leave, process = os._exit, os.getpid()

    def tell_and_leave(status: int) -> NoReturn:
        if os.getpid() == process:  # A forked child only ends itself.
            os._exit = leave
            status = _said(told, lambda: _closed(scope, run, status))
        leave(status)

    execv, execve = os.execv, os.execve

    def become(path: Any, words: Any, environment: Any = None) -> NoReturn:
        if os.getpid() == process:
            status = subprocess.Popen(  # noqa: S603 - the agent's own command
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
    from tracefork_core.egress import guard

    ending = Ending.of(SystemExit(status))
    error = ending.error
    guard.stay()
    scope.__exit__(None if error is None else type(error), error, None)
    return run, ending


def _said(told: Callable[[Outcome[R]], int], outcome: Outcome[R]) -> int:
    try:
        return told(outcome)
    except TraceforkError as error:
        message = str(error).removeprefix("tracefork: ")
        screen.stderr().print(f"✗ {printable(message, lines=True)}", soft_wrap=True)
        return error.exit_code
