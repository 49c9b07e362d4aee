"""What record and replay share: a block of code under a session.

A scope is a sync and async context manager and a decorator for both kinds of functions.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_args

from tracefork_core.chance.chance import Chance
from tracefork_core.chance.guard import guard_switch
from tracefork_core.chance.guard.boundary import BoundaryGuard
from tracefork_core.chance.guard.boundary import Mode as Boundary
from tracefork_core.chance.guard.boundary import as_mode as as_boundary
from tracefork_core.children.environment import hand_on, take_back
from tracefork_core.children.parent.hosting import Hosting
from tracefork_core.egress.guard import Mode, Watch
from tracefork_core.egress.native import GRPC_CHANNELS, native_modules
from tracefork_core.egress.programs import Report, is_guarded_python, program_name
from tracefork_core.egress.target import check_allowed
from tracefork_core.errors import StoppedError, TraceforkError, UsageError, again
from tracefork_core.exchange.current import check_process_is_free, requests_left_alone
from tracefork_core.exchange.lane import opened
from tracefork_core.order import spawning, waiting
from tracefork_core.order.anyio_threads import ANYIO_THREADS
from tracefork_core.order.thread_pools import THREAD_POOLS
from tracefork_core.run.decorated import decorated
from tracefork_core.seams import AMBIENT, of_adapters
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.session.session import Session
from tracefork_core.tape import Exchange
from tracefork_core.telemetry.instruments import EXCHANGES
from tracefork_core.telemetry.work import Value, Work, begin

Covers = Literal["context", "process"]
"""What a session covers: what is started from its block, or everything in the process."""

_PASSES = (KeyboardInterrupt, GeneratorExit)
"""What leaves a block as it is: somebody stops the program, not the run."""

_left_in_children: list[ExitStack] = []

R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Switches:
    """What record and replay both switch on, or leave alone; `record` says what each is."""

    ambient: bool
    clock: bool
    entropy: bool
    subprocesses: bool
    boundary: Boundary | None
    scope: Covers
    allow: Collection[str] = ()


class Scope(ABC, Generic[R]):
    """A block of code under a session. Can be entered once at a time.

    `run` is what `with` gave last, also where the block ended with an error.
    """

    _session: Session
    _operation = "record"
    """What reports of the run call it."""

    def __init__(self, switches: Switches) -> None:
        self._boundary = as_boundary(switches.boundary)
        check_allowed(switches.allow)
        if switches.scope not in get_args(Covers):
            raise UsageError(
                f'tracefork: scope must be "context" or "process" (got {switches.scope!r}).'
            )
        self._switches = switches
        self._tools = NamedTools()
        self._stack: ExitStack | None = None
        self.run: R | None = None
        self._pid = 0
        self._left_alone = 0
        self._work: Work | None = None

    @abstractmethod
    def _begin(self, stack: ExitStack) -> R:
        """Open files and session, register their undoing, and return what `with` gives."""

    @abstractmethod
    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        """Close the run after everything is switched off; return what must be raised, if anything.

        `error` is what the block itself raised.
        """

    @property
    def first_error(self) -> TraceforkError | None:
        """The error that ends the run, if there is one: the end of the block raises it again."""
        return self._session.poison

    @property
    def answered(self) -> list[Exchange]:
        """The exchanges of the tape that this run is answered from that it has asked for so far."""
        answers = self._session.answers
        if answers is None:
            return []
        left = answers.source.waiting
        return [one for one in answers.source.tape.exchanges if one.n not in left]

    def __enter__(self) -> R:
        if self._stack is not None:
            raise UsageError("tracefork: this block is open already; make another for each run.")
        if self._switches.scope == "process":
            check_process_is_free()  # Before a tape is made.
        self._leaks: list[str] = []
        self._work = begin(self._operation)
        before = requests_left_alone()
        with _Undoing() as stack:
            run = self._begin(stack)
            stack.callback(self._count_left_alone, before)
            self._stack = stack.pop_all()
        self._pid = os.getpid()
        self.run = run
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True  # A failed test shows the card, and no frame of ours.
        stack, self._stack = self._stack, None
        if stack is None:
            return False
        if self._pid != os.getpid():
            _left_in_children.append(stack)  # Undone where it was done; not by the collector.
            return False  # A forked child left the block: the run is its parent's.
        try:
            stack.close()
        finally:
            verdict = self._finish(error)
        if self._work is not None:
            is_over = isinstance(verdict, StoppedError)
            self._work.end(self._facts(self._work), None if is_over else verdict or error)
        if isinstance(verdict, StoppedError):
            return isinstance(error, Exception)  # It is over, whatever the agent made of that.
        if verdict is None:
            return False
        if isinstance(error, _PASSES):
            error.add_note(str(verdict))
            return False
        if error is None:
            raise verdict
        if _tells(error, verdict):
            raise again(verdict) from None  # What the SDK made of it is 300 lines of other code.
        raise again(verdict) from error

    def _facts(self, work: Work) -> dict[str, Value]:
        """Return the attributes of a report of this run, and add its measures to the report."""
        work.measure(EXCHANGES, self._session.asked)
        return {"tracefork.exchanges": self._session.asked}

    def _count_left_alone(self, before: int) -> None:
        self._left_alone = requests_left_alone() - before

    async def __aenter__(self) -> R:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True
        return self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        return decorated(
            function, lambda: self, "Put the `with` block around the loop that uses it."
        )

    def _switch_on(
        self,
        stack: ExitStack,
        session: Session,
        mode: Mode,
        chance: Chance,
    ) -> Watch:
        """Make the session current and switch seams, chance and guard on, in this order."""
        stack.enter_context(opened(session, everywhere=self._switches.scope == "process"))
        self._processes = Hosting(
            session, chance, ambient=self._switches.ambient, tools=self._tools.texts
        )
        self._processes.close_with(stack)
        spawning.start()
        stack.callback(spawning.stop)
        THREAD_POOLS.on()
        stack.callback(THREAD_POOLS.off)
        ANYIO_THREADS.on()
        stack.callback(ANYIO_THREADS.off)
        waiting.start()
        stack.callback(waiting.stop)
        for instrument in (*GRPC_CHANNELS, *AMBIENT, *of_adapters()):
            ambient = self._switches.ambient
            (instrument.on if ambient else instrument.wait_on)()
            stack.callback(instrument.off if ambient else instrument.wait_off)
        stack.enter_context(self._tools.of(session, session.poison_with))
        if session.travel is not None:
            session.travel.moved.append(chance.clock.go_to)
        chance.switch_on(stack, clock=self._switches.clock, entropy=self._switches.entropy)
        watch = Watch(
            session,
            mode,
            Report(Path(tempfile.gettempdir()) / f"tracefork-{uuid.uuid4().hex}.jsonl"),
            allow=self._switches.allow,
            programs=self._switches.subprocesses,
            on_refused=session.poison_with,
        )
        hand_on(watch, self._processes.descent, everywhere=self._switches.scope == "process")
        stack.callback(take_back, watch)
        self._processes.begin(stack, watch)
        watch.start()
        stack.callback(watch.stop)
        stack.callback(_note_native, watch, native_modules())
        if self._boundary is not None:
            self._guard_boundary(stack, session, self._boundary, chance.ambient)
        stack.callback(session.wait_for_others)  # First of all, while the seams are there.
        return watch

    def _guard_boundary(
        self, stack: ExitStack, session: Session, mode: Boundary, on_tape: Collection[str]
    ) -> None:
        guard = BoundaryGuard(
            session,
            mode,
            on_tape=on_tape,
            leaks=self._leaks,
            on_leak=session.poison_with,
        )
        guard_switch.start(guard, _unwatched_program)
        stack.callback(guard_switch.stop, guard)


class _Undoing(ExitStack):
    """An `ExitStack` whose callbacks take a third of the objects: a session has two dozen."""

    def callback(
        self, callback: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Callable[P, T]:
        if kwargs:
            return super().callback(callback, *args, **kwargs)
        self.push(_Undo(callback, args))
        return callback


class _Undo:
    __slots__ = ("_args", "_undo")

    def __init__(self, undo: Callable[..., object], args: tuple[object, ...]) -> None:
        self._undo = undo
        self._args = args

    def __call__(self, *error: object) -> None:
        self._undo(*self._args)


def _note_native(watch: Watch, before: set[str]) -> None:
    """Note which modules that connect in native code were loaded since the session began."""
    watch.unwatched |= native_modules() - before


def _unwatched_program(event: str, args: tuple[object, ...]) -> str | None:
    return None if is_guarded_python(event, args) else program_name(event, args)


def _tells(error: BaseException, verdict: TraceforkError) -> bool:
    """Return whether an error is the verdict, or what code between it and the block made of it."""
    summary, seen, found = str(verdict).partition("\n")[0], set[int](), [error]
    while found:
        one = found.pop()
        seen.add(id(one))
        if isinstance(one, TraceforkError) or summary in str(one):
            return True
        inside = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        near = (one.__cause__, one.__context__, *inside)
        found += [other for other in near if other is not None and id(other) not in seen]
    return False
