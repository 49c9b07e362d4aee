"""What Python does when the main thread is done: finish pools, join threads, run exit handlers.

It belongs to the run too, while the session is still open. Otherwise a last upload in an exit
handler would go out live behind a replay.
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
    """Wind down, and return the ending: who stops that by hand stops the agent."""
    try:
        wind_down()
    except KeyboardInterrupt as error:
        # Python waits for no thread after that. It would begin anew, and need another Ctrl-C.
        threading._shutdown = lambda: None  # type: ignore[attr-defined]  # noqa: SLF001
        return Ending.of(error)
    return ending


def wind_down() -> None:
    """Finish what Python finishes after the main thread: pools, threads, exit handlers.

    For a process that does nothing else any more.
    """
    with _main_thread_is_over():
        # What the interpreter calls before it joins threads: those of pools wait for it.
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
    """End a forked child that came out of the agent, as Python ends a process."""
    ending.show()
    wind_down()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(ending.status)


@contextmanager
def _main_thread_is_over() -> Iterator[None]:
    """Let the main thread pass for ended, as Python does: there are threads that end by it."""
    main = threading.main_thread()
    if main is not threading.current_thread():
        yield
        return
    main.is_alive = lambda: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        del main.is_alive
