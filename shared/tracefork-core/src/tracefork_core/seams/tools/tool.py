"""The seam of tools: a function of the agent's own is an exchange, as a call of a model is.

The session is asked when the tool is called. While recording, the function runs for real, and what
it returns, yields or raises goes onto the tape; at replay it does not run. What it does meanwhile
(asks the network, reads the clock, calls other tools) is below the seam: part of that exchange, and
none of its own.

Both runs are given the same: what the tape holds of a result, decoded. So an agent that keeps hold
of the very object its tool returned, or whose object has more to it than its fields, does so in the
recording no more than in the replay.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from functools import wraps
from typing import Any, TypeVar, cast, overload

from tracefork_core.exchange.contract import Effect, Session
from tracefork_core.exchange.current import current_session, is_crossing_seam
from tracefork_core.seams.tools.definition import Tool

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__tracefork_tool__"


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    effect: Effect | None = None,
    name: str | None = None,
    raises: Iterable[type[Exception]] = (),
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    effect: Effect | None = None,
    name: str | None = None,
    raises: Iterable[type[Exception]] = (),
) -> F | Callable[[F], F]:
    """Make a function an exchange: recorded when it is called, answered from the tape at replay.

    For functions and methods, sync and async, and for generators of both kinds: each value that is
    yielded comes in its turn. Outside a session the function is what it was.

    Arguments are compared as JSON, defaults included, the first one left out if it is called `self`
    or `cls`. Results are given as the tape holds them: JSON values, tuples, sets, bytes, dates and
    times (time zones become their offset), Decimal, UUID, Path; dataclasses, NamedTuples, enums,
    Structs of msgspec and models of pydantic, if the function is annotated to return them.

    Args:
        function: what is decorated.
        effect: what it does to the world: `read`, `write`, or nothing (`pure`). A fork repeats no
            write unless told to; where it is not said, it may be one.
        name: what it is called on the tape; its own name if not given, `Class.method` of a method.
        raises: exceptions that come back as what they are, built from their message alone, beside
            the builtin ones. Any other is a `ToolError`, in the recording as well.

    Raises:
        UsageError: no such effect, no such name, nothing to decorate. When called in a session: an
            argument that has no JSON (the tool does not run), or a result that could not be given
            again (the tool has run; the replay raises the same).
    """

    def decorate(decorated: F) -> F:
        definition = Tool(decorated, effect, name, raises)
        wrapped = _wrapped(definition)
        setattr(wrapped, MARK, definition)
        return cast(F, wrapped)

    return decorate if function is None else decorate(function)


def session_here() -> Session | None:
    """Return the session that a call is an exchange of."""
    session = current_session()
    return None if session is None or is_crossing_seam() else session


def _wrapped(tool: Tool) -> Callable[..., Any]:
    function = tool.function
    if inspect.iscoroutinefunction(function):
        return _async_function(tool, function)
    if inspect.isasyncgenfunction(function):
        return _async_generator(tool, function)
    if inspect.isgeneratorfunction(function):
        return _generator(tool, function)
    return _function(tool, function)


# Each of the kind it wraps: frameworks look at functions to know how to call them. What a session
# needs is imported under one: a program that never records one pays for none of it.


def _function(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (session := session_here()) is None:
            return function(*args, **kwargs)
        from tracefork_core.seams.tools import calls as tool_calls

        return tool_calls.call(tool, session, args, kwargs)

    return call


def _async_function(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        if (session := session_here()) is None:
            return await function(*args, **kwargs)
        from tracefork_core.seams.tools import calls as tool_calls

        return await tool_calls.acall(tool, session, args, kwargs)

    return call


def _generator(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if (session := session_here()) is None:
            return (yield from function(*args, **kwargs))
        from tracefork_core.seams.tools import streams as tool_streams

        return (yield from tool_streams.call(tool, session, args, kwargs))

    return call


def _async_generator(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner: AsyncGenerator[Any, Any]
        if (session := session_here()) is None:
            inner = function(*args, **kwargs)
        else:
            from tracefork_core.seams.tools import streams as tool_streams

            inner = tool_streams.acall(tool, session, args, kwargs)
        try:
            item = await anext(inner)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    item = await inner.athrow(error)
                else:
                    item = await inner.asend(sent)
        except StopAsyncIteration:
            return
        finally:
            await inner.aclose()

    return call
