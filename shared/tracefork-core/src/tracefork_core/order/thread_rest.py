"""Tell whether the other threads of a run have come to rest: each waits for something.

There is no event for it. A thread that waits for the interpreter's lock looks to the system like
one that waits for anything else, so the lock is let go for a moment: if no other thread of the
process ran in that moment, nobody wanted it, and who could not run waits. If others did run (a
thread that is none of the agent's), it takes longer: whoever wants the interpreter's lock tries
again every five milliseconds, so a thread that has not run for six waits for something else.

Who reads what a program says that it started (`process.stdout.read()`, and Python itself where it
looks for a library) is not at rest while that computes.

The system's word on a thread is Linux's; elsewhere a short sleep has to do.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import process_time_ns, sleep, thread_time_ns

from tracefork_core.patching.real_clock import monotonic_ns

_MOMENT = 0.0001
"""Seconds that the interpreter's lock is let go for."""
LIMIT_SECONDS = 1.0
"""How long a thread is waited for that does not come to rest. On a busy machine one that only waits
for a processor, a child's say, needs a quarter of that."""
_STEADY = 0.006
"""Seconds: more than the interpreter's switch interval."""
_ELSEWHERE = 0.002
_AT_REST = b"S", b"Z"
_NOISE_NS = 2_000
"""What lies between reading one clock and reading the other."""
_TASKS = "/proc/self/task"
_CAN_TELL = sys.platform == "linux" and Path(f"{_TASKS}/{os.getpid()}/schedstat").exists()


class Rest:
    """The threads of one run, and the programs they wait for, given by their native ids."""

    def __init__(self, threads: set[int]) -> None:
        self.threads = threads
        self.restless: set[int] = set()
        self.lock = threading.Lock()
        """One looks at a time: two who look would keep one another awake."""

    @property
    def alone(self) -> bool:
        """Whether there is no other thread."""
        others = len(self.threads)
        return others == 0 or (others == 1 and threading.get_native_id() in self.threads)

    def wait(self, limit: float | None = None) -> None:
        """Block until all others rest; bounded, since one may have much to do."""
        if self.alone:
            return
        with self.lock:
            waiting = Waiting(self, limit)
            while not waiting.is_over():
                pass


class Waiting:
    """Waits once for the threads of a run, for `limit` seconds; for all others `LIMIT_SECONDS`."""

    def __init__(self, rest: Rest, limit: float | None = None) -> None:
        self._rest = rest
        self._limit = LIMIT_SECONDS if limit is None else limit
        self._since = self._steady_since = monotonic_ns() / 1e9
        self._ran: dict[int, bytes] = {}  # state and running time of each thread
        self.saw_programs = False
        """Whether another process was waited for: a loop is told of the end of one."""

    def is_over(self) -> bool:
        """Block for a moment and return whether all others rest, or were waited for long enough."""
        if self._rest.alone:
            return True
        before = _others_ran()
        sleep(_MOMENT)
        now = monotonic_ns() / 1e9
        if not _CAN_TELL:
            return now - self._since >= _ELSEWHERE
        awake, passed = self._awake(now), now - self._since
        if awake and passed >= self._limit:
            self._rest.restless |= awake
            return True
        if passed >= LIMIT_SECONDS:  # From here on it is for the threads of the run alone.
            self._rest.restless |= awake - self._rest.threads
            awake &= self._rest.threads
        # After looking: that lets the interpreter's lock go as well.
        still = _others_ran() - before < _NOISE_NS
        return not awake and (still or now - self._steady_since >= _STEADY)

    def _awake(self, now: float) -> set[int]:
        """Return the threads that run or could run, and note when one of the run's last did.

        Those of the process, not of the run alone: a thread that was just started is not known yet.
        """
        me = threading.get_native_id()
        # Before the threads: whoever heard the last word of a program is seen to go on then.
        awake = {program for one in tuple(self._rest.threads) for program in self._heard(one)}
        # Those of child processes are not among them, and are found under /proc as well.
        own = set(map(int, os.listdir(_TASKS)))  # noqa: PTH208
        for thread in own.union(tuple(self._rest.threads)):
            if thread == me or (ran := self._look_at(thread)) is None:
                continue
            steady = self._ran.get(thread) == ran
            self._ran[thread] = ran
            if thread in self._rest.restless:
                if steady and ran.startswith(b"S"):  # Or it may only wait for a processor.
                    self._rest.restless.discard(thread)
                continue
            if not steady and thread in self._rest.threads:
                self._steady_since = now
            if not ran.startswith(_AT_REST):
                awake.add(thread)
        self.saw_programs |= not awake <= own
        return awake

    def _heard(self, thread: int) -> set[int]:
        """Return the programs that compute while a thread reads what they say."""
        computing = set()
        for program in _started_by(thread):
            if (state := _state_of(program)) in _AT_REST or not state:
                self._rest.restless.discard(program)
            elif program not in self._rest.restless:
                computing.add(program)
        # Asked last: few have started a program, and fewer have one that computes.
        return computing if computing and b"pipe_read" in _told(thread, "wchan") else set()

    def _look_at(self, thread: int) -> bytes | None:
        """Return the state of a thread and how long it has run; None where it has ended."""
        try:
            state = _read(f"/proc/{thread}/stat").rpartition(b") ")[2][:1]
            if thread in self._rest.threads:
                state += _read(f"/proc/{thread}/schedstat")
        except OSError:
            self._rest.threads.discard(thread)
            return None
        return state


def _others_ran() -> int:
    """Return for how many nanoseconds the other threads of this process have run."""
    return process_time_ns() - thread_time_ns()


def _started_by(thread: int) -> Iterator[int]:
    """Yield the programs that a thread has started and that still run, and what those started."""
    for program in map(int, _told(thread, "children").split()):
        yield program
        yield from _started_by(program)


def _state_of(thread: int) -> bytes:
    return _told(thread, "stat").rpartition(b") ")[2][:1]


def _told(thread: int, what: str) -> bytes:
    """Return what the system says of a thread; nothing where it has ended, or that is not said."""
    try:
        return _read(f"/proc/{thread}/task/{thread}/{what}")
    except OSError:
        return b""


def _read(path: str) -> bytes:
    # Not with `open`: this is read before most deliveries.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1024)
    finally:
        os.close(file)
