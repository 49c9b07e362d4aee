"""Do what Python does after the main thread: finish pools, join threads, run exit handlers.

This happens while the session is still open, because it is part of the run. An upload in an exit
handler would be sent live by a replay if the session were closed by then.
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


def wound_down(ending: Ending) -> Ending:
    """Wind down, and return the ending; Ctrl-C meanwhile makes it an interrupted one."""
    try:
        wind_down()
    except KeyboardInterrupt as error:
        # Python joins no thread after Ctrl-C. Its own shutdown would start to wait for them again,
        # and need a second Ctrl-C.
        threading._shutdown = lambda: None  # type: ignore[attr-defined]  # noqa: SLF001
        return Ending.of(error)
    return ending


def wind_down() -> None:
    """Finish pools, join threads and run exit handlers.

    Only for a process that does nothing else afterwards.
    """
    with _main_thread_is_over():
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
        atexit._run_exitfuncs()  # noqa: SLF001 - there is no public way to run them early


def end_forked(ending: Ending) -> NoReturn:
    """End a forked child whose agent has finished, as Python would end it."""
    ending.show()
    wind_down()
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
