"""Tell whether the other threads of a run are at rest: each waits for something.

No event tells this. To the system, a thread that waits for the interpreter's lock looks like a
thread that waits for anything else. So the lock is released for a moment. If no other thread of the
process ran in that moment, none wanted the lock, and all of them wait. If another thread ran (one
that is not the agent's), it takes longer: a thread that wants the interpreter's lock tries again
every five milliseconds, so a thread that has not run for six waits for something else.

A thread that reads a subprocess's output (`process.stdout.read()`, and Python itself when it looks
for a library) counts as busy while that subprocess uses CPU. Its system call tells that it reads,
and its file descriptor that it reads a pipe.

A thread at rest may still resume by itself: when a socket, a pipe or a subprocess has something for
it, or a sleep ends. `Rest.is_stuck` looks at the system call that the thread is in. A lock, an
event, a queue and a future all end in a futex, which only another thread wakes. An event loop is in
epoll, with the time until its next timer, and its file descriptors can be counted: one, its own, if
it has no sockets and no pipes. (`wchan` would name the same things without the time, and some
kernels switch it off.)

Linux tells the state of a thread. Other systems get a short sleep instead, and `is_stuck` is False.
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
"""For how many seconds the interpreter's lock is released."""
LIMIT_SECONDS = 1.0
"""How long to wait for a thread that does not come to rest. On a busy machine a thread that only
waits for a processor, that of a child for example, needs a quarter of that."""
_STEADY = 0.006
"""Seconds: more than the interpreter's switch interval."""
_ELSEWHERE = 0.002
_AT_REST = b"S", b"Z"
_NOISE_NS = 2_000
"""What lies between reading one clock and reading the other."""
_TASKS = "/proc/self/task"
_CAN_TELL = sys.platform == "linux" and Path(f"{_TASKS}/{os.getpid()}/schedstat").exists()
_SYSTEM_CALLS = {
    "x86_64": (b"202", (b"232", b"281"), b"0"),
    "aarch64": (b"98", (b"22",), b"63"),
}
"""For each machine the numbers of `futex`, of `epoll_wait` and `epoll_pwait`, and of `read`."""
_FUTEX, _EPOLL, _READ = _SYSTEM_CALLS.get(os.uname().machine if _CAN_TELL else "", (b"", (), b""))
_SOON_MS = 2_000
"""A loop whose next timer fires within this time may go on by itself."""


class Rest:
    """The threads of one run, and the subprocesses that it waits for, by their native ids."""

    def __init__(self, threads: set[int]) -> None:
        self.threads = threads
        self.restless: set[int] = set()
        self.lock = threading.Lock()
        """Hold it to look: two threads that look would keep one another awake."""

    @property
    def alone(self) -> bool:
        """Whether there is no other thread."""
        others = len(self.threads)
        return others == 0 or (others == 1 and threading.get_native_id() in self.threads)

    def wait(self, limit: float | None = None) -> None:
        """Block until all other threads rest, for at most `limit` (default `LIMIT_SECONDS`)."""
        if self.alone:
            return
        with self.lock:
            waiting = Waiting(self, limit)
            while not waiting.is_over():
                pass

    def is_stuck(self) -> bool:
        """Return whether no other thread of the run can resume: each waits for another one.

        False if unknown: see the head of this file.
        """
        if not _FUTEX or not self.lock.acquire(blocking=False):
            return False
        try:
            return Waiting(self).are_all_stuck()
        finally:
            self.lock.release()


class Waiting:
    """One wait for the threads of a run; `limit` is in seconds, else `LIMIT_SECONDS`."""

    def __init__(self, rest: Rest, limit: float | None = None) -> None:
        self._rest = rest
        self._limit = LIMIT_SECONDS if limit is None else limit
        self._since = self._steady_since = monotonic_ns() / 1e9
        self._ran: dict[int, bytes] = {}  # The state and the running time of each thread.
        self.saw_programs = False
        """Whether a process was waited for: an event loop has yet to learn of its end."""

    def is_over(self) -> bool:
        """Block for a moment and return whether all others rest, or the limit has passed."""
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
        if passed >= LIMIT_SECONDS:  # From here on only the threads of the run count.
            self._rest.restless |= awake - self._rest.threads
            awake &= self._rest.threads
        return not awake and self._is_still(before, now)

    def are_all_stuck(self) -> bool:
        """Block for some moments; return whether all other threads waited for one another."""
        looks = 0
        while True:
            before = _others_ran()
            sleep(_MOMENT)
            now = monotonic_ns() / 1e9
            if self._awake(now):
                return False
            others = self._rest.threads - {threading.get_native_id()}
            if not all(map(_waits_for_threads, others)):
                return False
            if looks and self._steady_since == now:  # A thread ran, so it may still be running.
                return False
            looks += 1
            if looks > 1 and self._is_still(before, now):
                return True

    def _is_still(self, before: int, now: float) -> bool:
        """Return whether no other thread ran since `before`, or none of the run's for long enough.

        Call it after looking at the threads, which releases the interpreter's lock too.
        """
        return _others_ran() - before < _NOISE_NS or now - self._steady_since >= _STEADY

    def _awake(self, now: float) -> set[int]:
        """Return the threads that run or could run, and note when a thread of the run last did.

        All threads of the process count: a thread that was just started is not known as the run's.
        """
        me = threading.get_native_id()
        # Before the threads: so the reader of a subprocess that just ended is seen running.
        awake = {program for one in tuple(self._rest.threads) for program in self._heard(one)}
        # The threads of child processes are not among them, and are found under /proc as well.
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
        """Return the subprocesses that use CPU while a thread reads their output."""
        computing = set()
        for program in _started_by(thread):
            if (state := _state_of(program)) in _AT_REST or not state:
                self._rest.restless.discard(program)
            elif program not in self._rest.restless:
                computing.add(program)
        # Checked last: few threads have started a subprocess, and fewer have one that uses CPU.
        return computing if computing and _reads_a_pipe(thread) else set()

    def _look_at(self, thread: int) -> bytes | None:
        """Return the state of a thread and how long it has run; None if it has ended."""
        try:
            state = _read(f"/proc/{thread}/stat").rpartition(b") ")[2][:1]
            if thread in self._rest.threads:
                state += _read(f"/proc/{thread}/schedstat")
        except OSError:
            self._rest.threads.discard(thread)
            return None
        return state


def _waits_for_threads(thread: int) -> bool:
    """Return whether only another thread of this process can resume a thread."""
    try:
        call = _read(f"{_TASKS}/{thread}/syscall").split()
        if call[0] in _EPOLL:
            until_timer = int(call[4], 16) & 0xFFFFFFFF  # -1, as unsigned, without a timer.
            watched = _read(f"/proc/self/fdinfo/{int(call[1], 16)}").count(b"tfd:")
            return watched <= 1 and until_timer > _SOON_MS
    except OSError:  # It has ended, belongs to another process, or the system does not tell.
        return False
    return call[0] == _FUTEX


def _reads_a_pipe(thread: int) -> bool:
    """Return whether a thread is reading from a pipe."""
    call = _status(thread, "syscall").split()
    if not call or call[0] != _READ:
        return False
    try:
        return os.readlink(f"/proc/{thread}/fd/{int(call[1], 16)}").startswith("pipe:")  # noqa: PTH115
    except OSError:  # It has read to the end and closed the pipe.
        return False


def _others_ran() -> int:
    """Return for how many nanoseconds the other threads of this process have run."""
    return process_time_ns() - thread_time_ns()


def _started_by(thread: int) -> Iterator[int]:
    """Yield the running subprocesses of a thread, and the subprocesses of those."""
    for program in map(int, _status(thread, "children").split()):
        yield program
        yield from _started_by(program)


def _state_of(thread: int) -> bytes:
    return _status(thread, "stat").rpartition(b") ")[2][:1]


def _status(thread: int, name: str) -> bytes:
    """Return a /proc file of a thread; empty if the thread has ended or there is no such file."""
    try:
        return _read(f"/proc/{thread}/task/{thread}/{name}")
    except OSError:
        return b""


def _read(path: str) -> bytes:
    # Not with `open`: this is read before most deliveries.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 1024)
    finally:
        os.close(file)
