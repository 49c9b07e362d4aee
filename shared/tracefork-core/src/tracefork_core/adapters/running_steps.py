"""Make a step of work that is done in pieces: by a generator, a stream or a context manager.

Between two items of a generator, and in the body of an `async with`, the code that uses them runs.
It must not see the step: what it asks is its own. It may also stop in the middle, or ask for each
item in a context of its own. So a step is current only while its own work goes on, and values are
put back without tokens, which are bound to one context.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    nullcontext,
)
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from tracefork_core.adapters.misses import check_session, session_checked
from tracefork_core.adapters.session_here import begin_step, end_step
from tracefork_core.exchange.current import current_step

T = TypeVar("T")
Values = Mapping[ContextVar[Any], object]

_NO_VALUES: Values = MappingProxyType({})
_END: Any = object()


class RunningStep:
    """A step that is current only while its own work goes on.

    Attributes:
        step: its id; None outside a session.
        current: the step inside of it that is current: the turn of an agent.
        values: context variables that hold while it works. Each needs a default.
    """

    def __init__(self, step: str | None, values: Values = _NO_VALUES) -> None:
        self.step = self.current = step
        self.values = values

    @classmethod
    def begin(
        cls, kind: str, name: str, values: Values = _NO_VALUES, **options: Any
    ) -> RunningStep:
        """Begin a step in the step around it; the options are those of `begin_step`."""
        return cls(begin_step(kind, name, parent=current_step.get(), **options), values)

    def working(self) -> AbstractContextManager[None]:
        """Make the step current for the length of a block."""
        return values_set({current_step: self.current, **self.values})

    def entered(self, result: Any) -> None:
        """Note what a context manager returned that was entered in this step."""

    def end(self, error: BaseException | None = None) -> None:
        """End the step, and the one inside; a reader that stops early is no error."""
        if isinstance(error, (GeneratorExit, StopAsyncIteration)):
            error = None
        if self.current != self.step:
            end_step(self.current, error)
        end_step(self.step, error)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Make the step current for the length of a block, and end it there."""
        try:
            with self.working():
                yield
        except BaseException as error:
            self.end(error)
            raise
        self.end()


@contextmanager
def step(
    kind: str, name: str, values: Values = _NO_VALUES, *, detail: dict[str, object] | None = None
) -> Iterator[None]:
    """Put a step on the tape that lasts as long as the block, in the step around it.

    Exchanges of the block belong to it, and so do those of tasks and threads that get its context.
    An exception ends the step with that error. `kind` and `name` are those of `begin_step`, and
    `values` are context variables that hold in the block.
    """
    with RunningStep.begin(kind, name, values, detail=detail).block():
        yield


async def events_in(
    begin: RunningStep | Callable[[], RunningStep], events: AsyncIterable[T]
) -> AsyncGenerator[T, None]:
    """Yield what a generator yields that works in a step, and end the step with it.

    An exception of the generator ends the step with that error. A reader that stops early ends the
    step without one, and closes the generator.

    Args:
        begin: the step, or a function that begins it when the first item is asked for.
        events: the generator.
    """
    running = begin if isinstance(begin, RunningStep) else begin()
    error: BaseException | None = None
    source = aiter(events)
    try:
        while True:
            with running.working():
                event = await anext(source, _END)
            if event is _END:
                return
            yield event
    except BaseException as raised:
        error = raised
        raise
    finally:
        if isinstance(source, AsyncGenerator):
            with running.working():
                await source.aclose()
        running.end(error)


class BlockIn(AbstractAsyncContextManager[T]):
    """A context manager that is entered and left in a step; its body is not part of the step.

    The session's error is raised in place of others: what is left may have handled it.

    Args:
        begin: begins the step, when the context manager is entered.
        manager: the context manager.
    """

    def __init__(
        self, begin: Callable[[], RunningStep], manager: AbstractAsyncContextManager[T]
    ) -> None:
        self._begin = begin
        self._manager = manager

    async def __aenter__(self) -> T:
        self._running = running = self._begin()
        try:
            with running.working():
                result = await self._manager.__aenter__()
        except BaseException as error:
            running.end(error)
            if isinstance(error, Exception):
                check_session()
            raise
        running.entered(result)
        return result

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        running, is_cancelled = self._running, error and not isinstance(error, Exception)
        with nullcontext() if is_cancelled else session_checked():
            try:
                with running.working():
                    is_handled = await self._manager.__aexit__(kind, error, traceback)
            except BaseException as raised:
                running.end(raised)
                raise
            running.end(None if is_handled else error)
        return is_handled


@contextmanager
def values_set(values: Values) -> Iterator[None]:
    """Give context variables these values for the length of the block, in any context.

    Each variable needs a default, to be put back where none was set.
    """
    before = {variable: variable.get() for variable in values}
    for variable, value in values.items():
        variable.set(value)
    try:
        yield
    finally:
        for variable, value in before.items():
            variable.set(value)
