"""Report to a session the end of each subprocess that its agent waits for.

A subprocess runs at replay as it did while recording. Its end, or the timeout of the wait for it,
has a turn. A thread that waits for a subprocess counts as busy while that subprocess uses CPU.
"""

from __future__ import annotations

import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from weakref import WeakSet

from tracefork_core.exchange.contract import PROGRAM, Timer
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.exchange.lane import program_of_lane
from tracefork_core.patching.on_import import OnImport
from tracefork_core.patching.patch import Patches

_ANYIO = "anyio._backends._asyncio"
"""Has a class of processes of its own, which waits without `asyncio.subprocess`."""


class ProgramEnds:
    """Wraps every method that waits for a subprocess.

    Args:
        timer: returns the timer for a wait at the caller's call site, or None outside a session.
    """

    def __init__(self, timer: Callable[[str], Timer | None]) -> None:
        self._timer = timer
        self._ended: WeakSet[Any] = WeakSet()

    def put_in(self, patches: Patches) -> None:
        """Wrap the methods of the standard library, and of anyio when it is imported."""
        for name in ("communicate", "wait"):
            patches.wrap(subprocess.Popen, name, self._ordered)
            patches.wrap(Process, name, self._ordered_on_a_loop)

        def wrap_anyio() -> None:
            patches.wrap(sys.modules[_ANYIO].Process, "wait", self._ordered_on_a_loop)

        if _ANYIO in sys.modules:
            wrap_anyio()
        else:
            on_import = OnImport(_ANYIO, wrap_anyio)
            patches.switch(on_import.on, on_import.off)

    def _ordered(self, original: Any) -> Any:
        @wraps(original)
        def ordered(process: Any, *args: Any, **more: Any) -> Any:
            with self._waiting(process) as timer:
                if timer is None:
                    return original(process, *args, **more)
                try:
                    with crossing_seam():  # It may poll for the end.
                        ended = original(process, *args, **more)
                except subprocess.TimeoutExpired:
                    timer.fire()
                    raise
                timer.fire()
                self._ended.add(process)
                return ended

        return ordered

    def _ordered_on_a_loop(self, original: Any) -> Any:
        @wraps(original)
        async def ordered(process: Any, *args: Any, **more: Any) -> Any:
            with self._waiting(process) as timer:
                if timer is None:
                    return await original(process, *args, **more)
                with crossing_seam():
                    ended = await original(process, *args, **more)
                await timer.afire()
                self._ended.add(process)
                return ended

        return ordered

    @contextmanager
    def _waiting(self, process: Any) -> Iterator[Timer | None]:
        """Yield the timer of this wait; None outside a session, and if the end was reported.

        The subprocess may have ended before the wait began, which differs from run to run. So such
        a wait has a timer too.
        """
        is_waiting = True
        timer = self._timer(PROGRAM) if process not in self._ended else None
        if timer is not None:
            timer.begin(lambda: is_waiting)
        try:
            with program_of_lane(process.pid):
                yield timer
        finally:
            is_waiting = False
