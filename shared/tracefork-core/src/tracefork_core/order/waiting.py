"""Report an agent's own waiting to its session: `sleep` of `time` and asyncio, and timers.

A wait with a timeout (`wait_for`, `timeout`, a future's `result(timeout)`) runs in real time. When
it times out, whatever that sets off has a turn. Sleeps and timers below a seam, and those of
threads that started before the session, belong to no session.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from typing import Any

from tracefork_core.exchange.call_sites import call_site
from tracefork_core.exchange.caller import ABOUT_THE_MACHINE
from tracefork_core.exchange.contract import TIMER, WAIT, Timer, Waits
from tracefork_core.exchange.current import is_crossing_seam
from tracefork_core.exchange.lane import session_of_lane
from tracefork_core.order import start_order
from tracefork_core.order.program_ends import ProgramEnds
from tracefork_core.patching.bound_names import Swaps
from tracefork_core.patching.patch import Patches, Shared

_THROUGH = frozenset(
    {
        "anyio._backends._asyncio",
        "anyio._core._subprocesses",
        "anyio._core._tasks",
        "async_timeout",
        "asyncio.base_events",
        "asyncio.subprocess",
        "asyncio.tasks",
        "asyncio.timeouts",
        "concurrent.futures._base",
        "contextlib",
        "queue",
        "subprocess",
        "threading",
    }
)
"""Modules that wait on behalf of their callers."""
_OVERDUE = 30.0
"""Seconds after which a timer counts as lost: its loop has ended, or is stuck."""
_IGNORED = ("aiohttp.", "httpx.", "httpx2.", *(f"{module}:" for module in ABOUT_THE_MACHINE))
"""Call sites whose timers have no turn. The tape already holds what a client's timeout did, as the
end of its exchange. Questions about the machine are no part of a run."""
_sleep = time.sleep
_asleep = asyncio.sleep
_call_at = asyncio.BaseEventLoop.call_at
_reschedule = asyncio.Timeout.reschedule
_create_task = asyncio.BaseEventLoop.create_task
_wait = threading.Condition.wait
_firing: set[asyncio.Task[None]] = set()


def _put_in(patches: Patches) -> None:
    patches.switch(_swaps.put_in, _swaps.take_out)
    _program_ends.put_in(patches)
    patches.replace(asyncio.BaseEventLoop, "call_at", _ordered_call_at)
    patches.replace(asyncio.Timeout, "reschedule", _ordered_reschedule)
    patches.replace(threading.Condition, "wait", _ordered_wait)


_patches = Shared(_put_in)


def start() -> None:
    """Report sleeps and timers to sessions from now on."""
    _patches.on()


def stop() -> None:
    """Undo `start`."""
    _patches.off()


def _waits() -> Waits | None:
    session = session_of_lane()
    return None if session is None or is_crossing_seam() else session.waits


@functools.wraps(_sleep)
def _ordered_sleep(seconds: float, /) -> None:
    if (waits := _waits()) is None:
        return _sleep(seconds)
    site, _ = call_site(1, _THROUGH)
    if site is None or not seconds > 0:
        return _sleep(seconds)
    return waits.sleep(seconds, site)


@functools.wraps(_asleep)
async def _ordered_asleep(delay: float, result: Any = None) -> Any:
    if not delay > 0 or (waits := _waits()) is None:
        return await _asleep(delay, result)
    site, _ = call_site(1, _THROUGH)
    if site is None:
        return await _asleep(delay, result)
    await waits.asleep(delay, site)
    return result


@functools.wraps(_call_at)
def _ordered_call_at(
    self: asyncio.BaseEventLoop, when: float, callback: Any, *args: Any, **more: Any
) -> asyncio.Handle:
    timer = _timer(TIMER) if when > self.time() else None
    if timer is None:
        return _call_at(self, when, callback, *args, **more)
    if timer.is_over(now=False):
        return self.call_soon(callback, *args, **more)
    return _start_timer(self, timer, when, callback, *args, **more)


@functools.wraps(_reschedule)
def _ordered_reschedule(self: Any, when: float | None) -> None:
    """Give a turn to a timeout that had already expired when it was set.

    asyncio starts no timer for it, so `call_at` never sees it.
    """
    loop = asyncio._get_running_loop()  # noqa: SLF001 - in `__all__`
    over = when is not None and isinstance(loop, asyncio.BaseEventLoop) and when <= loop.time()
    _reschedule(self, when)
    if over and (timer := _timer(TIMER)) is not None and not timer.is_over(now=True):
        self._timeout_handler.cancel()
        self._timeout_handler = _start_timer(loop, timer, when, self._on_timeout)


def _start_timer(
    loop: Any, timer: Timer, when: Any, callback: Any, *args: Any, **more: Any
) -> asyncio.TimerHandle:
    """Start a timer of an event loop, and report it to the session."""
    if (context := more.get("context")) is None:
        context = contextvars.copy_context()

    def fire() -> None:
        if not handle.cancelled():
            callback(*args)

    async def fire_in_turn() -> None:
        await timer.afire()
        loop.call_soon(fire, context=context)

    def over() -> None:
        # Referenced here, because a loop only has a weak reference to its tasks.
        task = _create_task(loop, fire_in_turn(), context=contextvars.Context())
        _firing.add(task)
        task.add_done_callback(_firing.discard)

    def is_pending() -> bool:
        return not (handle.cancelled() or loop.is_closed()) and loop.time() < when + _OVERDUE

    handle = _call_at(loop, when, over, **more)
    timer.begin(is_pending)
    return handle


@functools.wraps(_wait)
def _ordered_wait(self: Any, timeout: float | None = None) -> bool:
    timer = _timer(WAIT) if timeout is not None and timeout > 0 else None
    if timeout is None or timer is None or not self._is_owned():
        return _wait(self, timeout)
    # As Python does it, except that it waits for its turn without the lock: an earlier turn may
    # need that lock.
    waiter, woken = threading.Lock(), False
    waiter.acquire()
    self._waiters.append(waiter)
    timer.begin(lambda: waiter in self._waiters)
    state = self._release_save()
    try:
        woken = waiter.acquire(timeout=timeout)
        if not woken:
            timer.fire()
    finally:
        self._acquire_restore(state)
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        else:
            woken = True
    return woken


def _timer(source: str) -> Timer | None:
    if (waits := _waits()) is None:
        return None
    site, _ = call_site(2, _THROUGH)
    return None if site is None or site.startswith(_IGNORED) else waits.timer(site, source)


_program_ends = ProgramEnds(_timer)
_swaps = Swaps([(_sleep, _ordered_sleep), (_asleep, _ordered_asleep), *start_order.SWAPS])
