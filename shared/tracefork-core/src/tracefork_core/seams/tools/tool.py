"""The seam of tools: a call of one of the agent's own functions is an exchange, as a model call is.

A call looks for the current session. While recording, the function runs, and what it returns,
yields or raises is written to the tape; at replay it does not run. What the function does meanwhile
(network requests, reads of the clock, calls of other tools) is below the seam: it is part of this
exchange, and recorded in no other way.

Both runs get the same result: the decoded bytes of the tape. So the agent never gets the very
object that its function returned, nor more of an object than its fields, not even while recording.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from functools import wraps
from typing import Any, TypeVar, cast, overload

from tracefork_core.exchange.contract import Effect, Session
from tracefork_core.exchange.current import is_crossing_seam, session_of_request
from tracefork_core.seams.tools.definition import Tool
from tracefork_core.seams.tools.verifying import check_nested

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__tracefork_tool__"

ToolOf = Callable[[Session], Tool | None]
"""Returns the tool that a function is in a session; None if it is none there."""


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    effect: Effect | None = None,
    name: str | None = None,
    raises: Iterable[type[Exception]] = (),
    verifier: bool = False,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    effect: Effect | None = None,
    name: str | None = None,
    raises: Iterable[type[Exception]] = (),
    verifier: bool = False,
) -> F | Callable[[F], F]:
    """Record the calls of a function, and answer them from the tape at replay.

    Works for functions and methods, sync and async, and for generators of both kinds: each value
    that they yield is a delivery of its own. Outside a session the function is unchanged.

    Arguments are compared as JSON, including defaults, but without a first one called `self` or
    `cls`. Results can be JSON values, tuples, sets, bytes, dates and times (a time zone becomes its
    offset), Decimal, UUID and Path; and dataclasses, NamedTuples, enums, Structs of msgspec and
    models of pydantic, if the function is annotated to return them.

    Args:
        function: the function to decorate.
        effect: the function's side effects: `read`, `write`, or none (`pure`). A fork repeats no
            write unless you allow it, and treats a tool without `effect` as a possible write.
        name: the name on the tape; by default the function's own, `Class.method` for a method.
        raises: exceptions that keep their class, besides the builtin ones; they are rebuilt from
            their message. All others become a `ToolError`, in the recording, too.
        verifier: the function only checks what others did (a test run, a linter). `tracefork replay
            --mode hybrid` runs it again, and compares its result with the recorded one.

    Raises:
        UsageError: the effect or the name is invalid, or this is not a function. When called in a
            session: an argument has no JSON form (the tool does not run), or a replay could not
            rebuild the result (the tool has run; the replay raises the same).
    """

    def decorate(decorated: F) -> F:
        definition = Tool(decorated, effect, name, raises, verifier=verifier)
        decorating = wrapped(decorated, lambda session: definition)
        setattr(decorating, MARK, definition)
        return cast(F, decorating)

    return decorate if function is None else decorate(function)


def session_here() -> Session | None:
    """Return the session that records a call made here; None below a seam."""
    session = session_of_request()
    return None if session is None or is_crossing_seam() else session


def _asked(tool_of: ToolOf) -> tuple[Session, Tool] | None:
    """Return the session that records a call made here, and the tool that it is there."""
    session = session_of_request()
    # Asked below a seam too: the call is part of another exchange, and was made all the same.
    tool = None if session is None else tool_of(session)
    if session is None or tool is None:
        return None
    if is_crossing_seam():
        check_nested(tool)
        return None
    return session, tool


def wrapped(function: Callable[..., Any], tool_of: ToolOf) -> Callable[..., Any]:
    """Return a function of the same kind whose calls are exchanges of the tool that they are."""
    if inspect.iscoroutinefunction(function):
        return _async_function(function, tool_of)
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, tool_of)
    if inspect.isgeneratorfunction(function):
        return _generator(function, tool_of)
    return _function(function, tool_of)


# A wrapper is of the same kind as its function, because frameworks inspect functions to know how to
# call them. The imports are inside: a program that runs outside a session does not pay for them.


def _function(function: Callable[..., Any], tool_of: ToolOf) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (asked := _asked(tool_of)) is None:
            return function(*args, **kwargs)
        from tracefork_core.seams.tools import calls as tool_calls

        session, tool = asked
        return tool_calls.call(tool, session, args, kwargs)

    return call


def _async_function(function: Callable[..., Any], tool_of: ToolOf) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        if (asked := _asked(tool_of)) is None:
            return await function(*args, **kwargs)
        from tracefork_core.seams.tools import calls as tool_calls

        session, tool = asked
        return await tool_calls.acall(tool, session, args, kwargs)

    return call


def _generator(function: Callable[..., Any], tool_of: ToolOf) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if (asked := _asked(tool_of)) is None:
            return (yield from function(*args, **kwargs))
        from tracefork_core.seams.tools import streams as tool_streams

        session, tool = asked
        return (yield from tool_streams.call(tool, session, args, kwargs))

    return call


def _async_generator(function: Callable[..., Any], tool_of: ToolOf) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner: AsyncGenerator[Any, Any]
        if (asked := _asked(tool_of)) is None:
            inner = function(*args, **kwargs)
        else:
            from tracefork_core.seams.tools import streams as tool_streams

            session, tool = asked
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
