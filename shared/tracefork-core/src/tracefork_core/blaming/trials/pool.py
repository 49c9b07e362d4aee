"""Run forks in this process, in worker processes, or on an executor that you pass."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.resource_tracker import ensure_running
from types import TracebackType
from typing import Self

import msgspec

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.trials.trial import FATAL, Agent, Job, Oracle, VerdictError, carry_out
from tracefork_core.errors import UnwritableError, UsageError

_ATTEMPTS = 3
# Spawn, since a fork of this process would copy locks that other threads hold.
_PROCESSES = get_context("spawn")


class Pool:
    """A context manager that runs jobs in any order, and retries a job whose worker died."""

    def __init__(
        self,
        agent: Agent,
        oracle: Oracle,
        workers: int = 1,
        executor: Executor | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        """Choose where to run.

        Args:
            agent: the agent to run.
            oracle: the oracle that grades it.
            workers: number of processes; 1 is this process.
            executor: run jobs here instead.
            fresh: run each job in a new process.

        Raises:
            UsageError: the agent or the oracle cannot be sent to other processes.
        """
        self._agent = agent
        self._oracle = oracle
        self._workers = workers
        self._given = executor
        self._own: Executor | None = None
        self._carry_out: Callable[[Job, Agent, Oracle], Trial] = _carry_out(executor, fresh)
        self._fresh = fresh
        self._is_here = executor is None and workers <= 1 and not fresh
        if executor is None and not self._is_here:
            for what, function in (("agent", agent), ("oracle", oracle)):
                try:
                    pickle.dumps(function)
                except Exception as error:
                    raise UsageError(
                        f"tracefork: cannot send the {what} {function!r} to other processes. "
                        "Define it at the top level of a module, or use one worker, which is this "
                        "process (without fresh=True)."
                    ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._own is not None:
            # After a full disk the user resumes this blame: no fork may still be running then.
            ended = error is None or isinstance(error, UnwritableError)
            self._own.shutdown(wait=ended, cancel_futures=True)

    def run(self, jobs: Sequence[Job]) -> Iterator[Trial]:
        """Yield the trials of some jobs, each as soon as it is done.

        A job whose worker died is run up to 3 times; after that its trial has no outcome.

        Raises:
            UnwritableError: a branch cannot be written.
            VerdictError: the oracle returned something other than True or False.
        """
        if self._is_here:
            for job in jobs:
                yield carry_out(job, self._agent, self._oracle)
            return
        left = list(jobs)
        if self._given is not None:  # Its workers may be threads of this process.
            left = [msgspec.structs.replace(job, alone=False) for job in left]
        for attempt in range(_ATTEMPTS):
            failed: list[Job] = []
            for future, job in self._submitted(left):
                error = future.exception()
                if error is None:
                    yield future.result()
                elif isinstance(error, FATAL):
                    raise error
                elif attempt + 1 == _ATTEMPTS:
                    reason = f"{type(error).__name__}: {error}"
                    yield Trial(job.number, job.probe, None, undefined=reason)
                else:
                    failed.append(job)
            if not (left := failed):
                return
            self._begin_anew()

    def _submitted(self, jobs: Sequence[Job]) -> Iterator[tuple[Future[Trial], Job]]:
        executor = self._executor()
        futures: dict[Future[Trial], Job] = {}
        for job in jobs:
            try:
                with nullcontext() if executor is self._given else _interrupted_later():
                    future = executor.submit(self._carry_out, job, self._agent, self._oracle)
            except RuntimeError as error:  # The pool broke while earlier jobs were running.
                future = Future()
                future.set_exception(error)
            futures[future] = job
        # Other executors have their own futures, which the standard `as_completed` cannot wait for.
        if all(isinstance(future, Future) for future in futures):
            for future in as_completed(futures):
                yield future, futures[future]
        else:
            yield from futures.items()

    def _executor(self) -> Executor:
        if self._given is not None:
            return self._given
        if self._own is None and self._fresh:
            # Not `max_tasks_per_child`: on a second batch such a pool can wait forever for workers
            # that have ended, and a worker that dies takes the others with it.
            self._own = ThreadPoolExecutor(self._workers)
        elif self._own is None:
            self._own = ProcessPoolExecutor(
                self._workers, mp_context=_PROCESSES, initializer=_end_with_parent
            )
        return self._own

    def _begin_anew(self) -> None:
        """Drop the worker processes; the next batch starts new ones."""
        if self._own is not None:
            self._own.shutdown(wait=False, cancel_futures=True)
            self._own = None


def _carry_out(executor: Executor | None, fresh: bool) -> Callable[[Job, Agent, Oracle], Trial]:
    if fresh:
        return _apart
    return _interruptibly if executor is None else carry_out


def _interruptibly(job: Job, agent: Agent, oracle: Oracle) -> Trial:
    """Run a job in a worker that receives Ctrl-C during a job only, not between jobs."""
    _heed_interrupts(heed=True)
    try:
        return carry_out(job, agent, oracle)
    finally:
        _heed_interrupts(heed=False)


def _apart(job: Job, agent: Agent, oracle: Oracle) -> Trial:
    """Run a job in a new process.

    Raises:
        RuntimeError: the process died.
        UnwritableError: the branch cannot be written.
        VerdictError: the oracle returned something other than True or False.
    """
    here, there = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_child, args=(there, job, agent, oracle), daemon=False)
    with here:
        with there, _interrupted_later():
            process.start()
        try:
            result: Trial | UnwritableError | VerdictError = here.recv()
        except EOFError as error:
            process.join()
            raise RuntimeError(f"the process of a fork ended: {process.exitcode}") from error
    process.join()
    if isinstance(result, FATAL):
        raise result
    return result


def _child(there: Connection, job: Job, agent: Agent, oracle: Oracle) -> None:
    try:
        _heed_interrupts(heed=True)
        _end_with_parent()
        with there:
            try:
                there.send(carry_out(job, agent, oracle))
            except FATAL as error:
                there.send(error)
    except KeyboardInterrupt:
        os._exit(130)  # Ctrl-C in a terminal: the parent process reports it, once.


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Block Ctrl-C in a process that is started here until it is ready to handle it."""
    ensure_running()  # Starting the tracker unblocks signals, so start it before blocking them.
    _heed_interrupts(heed=False)
    try:
        yield
    finally:
        _heed_interrupts(heed=True)


def _heed_interrupts(*, heed: bool) -> None:
    if hasattr(signal, "pthread_sigmask"):  # Windows has no such mask.
        signal.pthread_sigmask(signal.SIG_UNBLOCK if heed else signal.SIG_BLOCK, {signal.SIGINT})


def _end_with_parent() -> None:
    """Exit when the parent process ends, since then no process could journal what a fork spends."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="tracefork-parent", daemon=True).start()
