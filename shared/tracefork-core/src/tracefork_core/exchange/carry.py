"""Hand work of a session to a thread or a worker that was there before it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import aclosing
from typing import Any, TypeVar, cast

from tracefork_core.exchange.contract import Lane
from tracefork_core.exchange.generators import Place, keep
from tracefork_core.exchange.lane import name_of, on_lane, spawned

F = TypeVar("F", bound=Callable[..., Any])


def carry(function: F) -> F:
    """Bind a function to the session here, wherever and by whatever it is called later.

    Tasks, threads and jobs of pools that start in the block of a session belong to it without this.
    An application's own queue is different: its workers started before the session, and nothing
    tells them whose job they take. Put `carry(job)` into such a queue.

    Works for functions, methods, coroutine functions and both kinds of generator functions. The
    calls run on a lane of their own, named after the function. Outside a session, and after the
    session has ended, the function runs as if it had not been carried.

    Args:
        function: what to call later.

    Returns:
        A function of the same kind; `function` itself outside a session.
    """
    lane = spawned(name_of(function))
    return function if lane is None else cast(F, _bound(function, lane))


def _bound(function: Callable[..., Any], lane: Lane) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def async_steps(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            keep(sys._getframe(), Place(lane.session, lane))
            async with aclosing(function(*args, **kwargs)) as steps:
                async for value in steps:
                    yield value

        return async_steps
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            keep(sys._getframe(), Place(lane.session, lane))
            return (yield from function(*args, **kwargs))

        return steps
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with on_lane(lane):
                return await function(*args, **kwargs)

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with on_lane(lane):
            return function(*args, **kwargs)

    return called
