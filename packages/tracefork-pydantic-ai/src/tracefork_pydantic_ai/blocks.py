"""Make a step of an asynchronous context manager, whose body is not part of the step.

The body of `async with agent.iter(...)` is the program's own code, and so is that of a streamed
request: what it asks is not the agent's. So context variables hold while the manager is entered and
left, and not in between. They are put back without tokens, which are bound to one context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol

from tracefork_core.adapters import check_session, values_set

Values = Mapping[ContextVar[Any], object]


class Step(Protocol):
    """What begins and ends with a block."""

    def values(self) -> Values:
        """Return the context variables that hold while the manager works."""

    def entered(self, result: Any) -> None:
        """Note what the manager returned when it was entered."""

    def end(self, error: BaseException | None) -> None:
        """End the step."""


class Block(AbstractAsyncContextManager[Any]):
    """A context manager inside of a step, which begins when it is entered."""

    def __init__(
        self, manager: AbstractAsyncContextManager[Any], begin: Callable[[], Step]
    ) -> None:
        self._manager = manager
        self._begin = begin

    async def __aenter__(self) -> Any:
        self._step = step = self._begin()
        try:
            with values_set(step.values()):
                result = await self._manager.__aenter__()
        except BaseException as error:
            step.end(error)
            _check(error)
            raise
        step.entered(result)
        return result

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        step = self._step
        try:
            with values_set(step.values()):
                is_handled = await self._manager.__aexit__(kind, error, traceback)
        except BaseException as raised:
            step.end(raised)
            _check(raised)
            raise
        step.end(None if is_handled else error)
        _check(error)
        return is_handled


def _check(error: BaseException | None) -> None:
    """Raise the session's error in place of another, or of none: a hook may have handled it."""
    if error is None or isinstance(error, Exception):
        check_session()
