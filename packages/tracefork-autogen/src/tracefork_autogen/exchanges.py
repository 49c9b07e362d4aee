"""Make one call an exchange: of a tool, of a code executor, or of what a person is asked.

Frameworks tell models what a tool's exception says. An exception of a class that a tape cannot
hold becomes a `ToolError`, and its text would begin with the name of the class. `TextError` says
what the exception said, so that a recorded run asks its models the same as any other run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from tracefork_autogen.values import Values
from tracefork_core import ToolError
from tracefork_core.adapters import (
    Effect,
    atool_exchange,
    atool_stream,
)


class TextError(ToolError):
    """A tool failed with an exception that a tape cannot hold; its text is that exception's."""

    def __str__(self) -> str:
        return self.message


async def exchange(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., Awaitable[object]],
    values: Values,
    *,
    effect: Effect | None = None,
    function: Any = None,
) -> Any:
    """Return what `run(**arguments)` returns, or what it returned in the recording."""
    try:
        return await atool_exchange(name, arguments, run, values, effect=effect, function=function)
    except ToolError as error:
        raise _said_by(error) from error.__cause__


async def stream(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., AsyncGenerator[object, None]],
    values: Values,
    *,
    effect: Effect | None = None,
    function: Any = None,
) -> AsyncGenerator[Any, None]:
    """Do the same for a tool that yields."""
    items = atool_stream(name, arguments, run, values, effect=effect, function=function)
    try:
        async for item in items:
            yield item
    except ToolError as error:
        raise _said_by(error) from error.__cause__
    finally:
        await items.aclose()


def _said_by(error: ToolError) -> TextError:
    said = TextError(error.kind, error.message)
    for note in getattr(error, "__notes__", ()):
        said.add_note(note)
    return said
