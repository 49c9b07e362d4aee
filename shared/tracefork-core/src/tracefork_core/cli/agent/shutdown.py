"""Do what Python does after an agent's last line.

It reports an error by `sys.excepthook`, finishes pools, joins threads, runs exit handlers, and lets
go of the agent's objects. This happens while the session is still open, because it is part of the
run. An upload in an exit handler would be sent live by a replay if the session were closed by then.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.agent.finalizers import let_go


def ended(ending: Ending, *, show: bool) -> Ending:
    """Do all that Python does after an agent's last line, and return the ending.

    An exit in `sys.excepthook` changes the ending. Ctrl-C meanwhile makes it an interrupted one.

    Args:
        ending: how the agent ended.
        show: print what Python would print about its error. Else its frames are kept to be shown.
    """
    ending = ending.reported(show=show)
    if isinstance(ending.error, SystemExit):
        ending.forget_frames()  # Python handles an exit before it ends, any other error after that.
    try:
        wind_down()
    except KeyboardInterrupt as error:
        # Python joins no thread after Ctrl-C. Its own shutdown would start to wait for them again,
        # and need a second Ctrl-C.
        threading._shutdown = lambda: None  # type: ignore[attr-defined]  # noqa: SLF001
        ending = Ending.of(error)
    let_go(ending, forget=show)
    return ending


def wind_down() -> None:
    """Finish pools, join threads and run exit handlers.

    Only for a process that does nothing else afterwards.
    """
    with _main_thread_is_over():
        try:
            _join_threads()
        finally:  # Python runs them after Ctrl-C, too.
            atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way to run them early


def _join_threads() -> None:
    # The interpreter calls these before it joins threads: threads of pools wait for them.
    before_joining = threading._threading_atexits  # type: ignore[attr-defined]  # noqa: SLF001
    while before_joining:
        before_joining.pop()()
    while waiting := [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.current_thread()
    ]:
        waiting[0].join()


def end_forked(ending: Ending) -> NoReturn:
    """End a forked child whose agent has finished, as Python would end it."""
    ending = ended(ending, show=True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(ending.status)


@contextmanager
def _main_thread_is_over() -> Iterator[None]:
    """Report the main thread as ended, as Python does: some threads end when it has."""
    main = threading.main_thread()
    if main is not threading.current_thread():
        yield
        return
    main.is_alive = lambda: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        del main.is_alive
