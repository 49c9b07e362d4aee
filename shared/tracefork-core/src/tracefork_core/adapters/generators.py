"""Make a step of an asynchronous generator: of an agent that yields events, say.

Between two items the code that reads them runs, and it must not see the step of the generator: what
it asks is its own. The reader may also stop in the middle, or ask for each item in a context of its
own. So the step is current only while the generator works on an item, and values are put back
without tokens, which are bound to one context.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from tracefork_core.adapters.session_here import begin_step, end_step
from tracefork_core.exchange.current import current_step

T = TypeVar("T")

_NO_VALUES: Mapping[ContextVar[Any], object] = {}
_END: Any = object()


@dataclass(slots=True)
class RunningStep:
    """The step of a generator, and the one inside of it that is current: the turn of an agent."""

    step: str | None
    current: str | None

    @staticmethod
    def begin(kind: str, name: str, **options: Any) -> RunningStep:
        """Begin a step in the step around it; the options are those of `begin_step`."""
        begun = begin_step(kind, name, parent=current_step.get(), **options)
        return RunningStep(begun, begun)


async def events_in(
    running: RunningStep,
    events: AsyncIterable[T],
    values: Mapping[ContextVar[Any], object] = _NO_VALUES,
) -> AsyncGenerator[T, None]:
    """Yield what a generator yields that works in a step, and end the step with it.

    An exception of the generator ends the step with that error. A reader that stops early ends the
    step without one, and closes the generator.

    Args:
        running: the step. Its `current` may change while the generator runs.
        events: the generator.
        values: context variables that hold while the generator works, and their values. Each
            variable needs a default.
    """
    error: BaseException | None = None
    source = aiter(events)
    try:
        while True:
            with values_set({current_step: running.current, **values}):
                event = await anext(source, _END)
            if event is _END:
                return
            yield event
    except BaseException as raised:
        error = None if isinstance(raised, GeneratorExit) else raised
        raise
    finally:
        if isinstance(source, AsyncGenerator):
            with values_set({current_step: running.current, **values}):
                await source.aclose()
        if running.current != running.step:
            end_step(running.current, error)
        end_step(running.step, error)


@contextmanager
def values_set(values: Mapping[ContextVar[Any], object]) -> Iterator[None]:
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
