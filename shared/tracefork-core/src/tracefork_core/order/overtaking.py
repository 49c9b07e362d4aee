"""Decide when the first in line may go ahead of the turn that is due.

When may the first go ahead? Waiting a fixed time (`turnstile.GRACE_SECONDS` more than the exchange
took in the recording) was the only rule once: with 40 threads on a pool of 6 a replay took six
times as long as its recording, and its threads did nothing in it. Now one of the waiting threads or
tasks *watches*: every few milliseconds it looks whether all other threads of the run wait for one
another (`Rest.is_stuck`) and its loop has nothing to do. If so, no amount of time brings the due
turn, and the first goes ahead at once. All that the agent waits for and that is on the tape
(answers, sleeps, timers, the ends of programs) has a turn of its own and so cannot help either.

The fixed time still holds where that cannot be told: where a thread waits for a socket, a pipe, a
subprocess, a child process of the run or a sleep that was not recorded, since it may go on and ask;
where a loop watches such things; and on systems other than Linux. To start another thread for a
pool that is stuck would keep the order, but break an agent that relies on the size of its pool to
protect what it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracefork_core.order.policies import Policy
from tracefork_core.order.thread_rest import Rest


class Overtaking:
    """Lets the first that waits go ahead when nothing can bring the due turn.

    Safe to use from any thread. `hand_on_watch` is called with the line held, the others without.
    """

    def __init__(self, policy: Policy, rest: Rest) -> None:
        self._policy = policy
        self._line = policy.line
        self._rest = rest
        self._holding = 0
        self._watcher: int | None = None
        self._watches_in_thread = False

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Keep others from going ahead while the pace or a timer is waited for."""
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1

    def watches(self, turn: int, *, in_thread: bool) -> bool:
        """Return whether what waits for `turn` is to look whether the run is stuck.

        One watches at a time: two would keep one another awake. A thread rather than a task, whose
        loop may be blocked.
        """
        with self._line.held:
            if self._watcher is None or (in_thread and not self._watches_in_thread):
                self._watcher, self._watches_in_thread = turn, in_thread
            return self._watcher == turn

    def hand_on_watch(self, turn: int) -> None:
        """Let another one watch when what waited for `turn` does so no longer.

        That is the last in line: if it were the next, each delivery would hand on the watch. It
        watches from now on, not from its next look, since its own turn may be taken before that.
        """
        if self._watcher != turn:
            return
        blocked = [turn for turn, arrival in self._line.here.items() if arrival.wake is not None]
        self._watcher, self._watches_in_thread = max(blocked, default=None), False
        if self._watcher is not None:
            self._line.wake(self._watcher)

    def went_ahead(self, is_idle: Callable[[], bool] = lambda: True) -> bool:
        """Let the first go ahead if nothing can bring the due turn, and return whether it did.

        `is_idle` tells whether the loop of the caller has nothing to do. It is asked twice: a
        thread that comes to rest in between may have given the loop the result of its job.
        """
        if not is_idle():
            return False
        with self._line.held:
            position = self._line.position
            is_missing = self._is_missing()
        return is_missing and self._rest.is_stuck() and is_idle() and self.go_ahead(position)

    def _is_missing(self) -> bool:
        """Return whether nothing has come for the due turn, or will after a sleep, but others wait.

        Quiet decides about soft turns (`Policy.decide`).
        """
        line, due = self._line, self._line.due
        if due is None or due[1] < 0 or self._holding or not self._policy.keeps_order:
            return False
        first = min(line.here, default=None)
        return first is not None and first > due[0] and line.is_awaited(first)

    def go_ahead(self, position: int) -> bool:
        """Pass what stays away, up to the first turn that is awaited. Return whether that helped.

        It does not if something was delivered since the line was at `position`.
        """
        with self._line.held:
            line = self._line
            if line.due is None or self._holding or line.position != position:
                return False
            line.pass_stopped_timers()
            last = line.last_awaited()
            if last is None or not self._policy.keeps_order or self._policy.awaits_timer():
                return False
            while line.due is not None:
                due, owner = line.due
                if due >= last or line.is_awaited(due):
                    break
                line.absent.add(owner)
                line.advance()
            return True

    def missing_owner(self, position: int) -> int | None:
        """Return the exchange that all others wait for, if the line has stayed at `position`.

        None if the line has moved, or may still move. -1 if only soft turns are left: behind them
        only sleeps and timeouts wait, and those continue by themselves.
        """
        with self._line.held:
            line = self._line
            if line.position != position or (
                line.due is None or self._holding or not self._policy.keeps_order
            ):
                return None
            return next((owner for _, owner in line.order[position:] if owner >= 0), -1)
