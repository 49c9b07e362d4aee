"""The ends of programs that an agent waits for, shown to its session.

A program runs at replay as it ran when this was recorded. What its end sets off, or that it was
waited for long enough, comes in its turn. While it computes, who waits for it is not at rest.
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
from tracefork_core.patching.on_import import Arrival

_ANYIO = "anyio._backends._asyncio"
"""The module of a class of processes of its own, which asks nobody for the end of one."""


class ProgramEnds:
    """Puts what waits for a program in place of Python's; `timer` gives the one of a wait here."""

    def __init__(self, timer: Callable[[str], Timer | None]) -> None:
        self._timer = timer
        self._theirs: list[tuple[type, str, Any]] = []
        self._ended: WeakSet[Any] = WeakSet()
        self._arrival = Arrival(_ANYIO, self._put_in_anyio)

    def put_in(self) -> None:
        for name in ("communicate", "wait"):
            self._put(subprocess.Popen, name, self._told)
            self._put(Process, name, self._told_on_a_loop)
        self._put_in_anyio()

    def take_out(self) -> None:
        self._arrival.off()
        while self._theirs:
            setattr(*self._theirs.pop())

    def _put_in_anyio(self) -> None:
        if (module := sys.modules.get(_ANYIO)) is None:
            self._arrival.on()
        else:
            self._put(module.Process, "wait", self._told_on_a_loop)

    def _put(self, kind: type, name: str, told: Callable[[Any], Any]) -> None:
        original = getattr(kind, name)
        self._theirs.append((kind, name, original))
        setattr(kind, name, told(original))

    def _told(self, original: Any) -> Any:
        @wraps(original)
        def told(process: Any, *args: Any, **more: Any) -> Any:
            with self._waiting(process) as timer:
                if timer is None:
                    return original(process, *args, **more)
                try:
                    with crossing_seam():  # It may look for the end every now and then.
                        ended = original(process, *args, **more)
                except subprocess.TimeoutExpired:
                    timer.fire()
                    raise
                timer.fire()
                self._ended.add(process)
                return ended

        return told

    def _told_on_a_loop(self, original: Any) -> Any:
        @wraps(original)
        async def told(process: Any, *args: Any, **more: Any) -> Any:
            with self._waiting(process) as timer:
                if timer is None:
                    return await original(process, *args, **more)
                with crossing_seam():
                    ended = await original(process, *args, **more)
                await timer.afire()
                self._ended.add(process)
                return ended

        return told

    @contextmanager
    def _waiting(self, process: Any) -> Iterator[Timer | None]:
        """Give what is to be told of an end; nothing where that was told, or is nobody's.

        It may have come already: that is another thing in each run.
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
