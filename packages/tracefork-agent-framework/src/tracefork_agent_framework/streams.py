"""Put the work of a call into a step, whether its result is awaited or read as a stream.

Agents, workflows and models return a coroutine, or a `ResponseStream` that does its work while it
is read. So a stream carries its step along, and the step is current only while the stream works on
an item. Between two items the reader sees its own step.

Middleware, nodes and the framework itself catch errors, and tell models about those of tools. So
the error of a session that has failed is raised wherever such work ends.

A stream that is not read to its end keeps its step open, unless it is closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from agent_framework import ResponseStream

from tracefork_agent_framework.places import Place
from tracefork_core.adapters import Patches, check_session

_PLACE = "_tracefork_place"


def put_in(patches: Patches) -> None:
    """Let streams work in the steps that they carry."""
    patches.wrap(ResponseStream, "__anext__", _next)
    patches.wrap(ResponseStream, "_get_stream", _resolved)
    patches.wrap(ResponseStream, "get_final_response", _final)
    if hasattr(ResponseStream, "close"):  # Agent Framework 1.0 has no way to close one.
        patches.wrap(ResponseStream, "close", _closed)


def within(place: Place, start: Callable[[], Any]) -> Any:
    """Return the result of a call, whose work is done in a step."""
    result = start()
    if not isinstance(result, ResponseStream):
        return _awaited(place, result)
    if not hasattr(result, _PLACE):
        setattr(result, _PLACE, place)
    return result


async def _awaited(place: Place, result: Awaitable[Any]) -> Any:
    with place.working():
        answer = await _work(place, lambda: result)
    place.end()
    check_session()
    return answer


async def _work(place: Place, work: Callable[[], Awaitable[Any]]) -> Any:
    """Await work; an error ends the step, and is the session's own if that has failed."""
    try:
        return await work()
    except StopAsyncIteration:
        place.end()
        check_session()
        raise
    except BaseException as error:
        place.end(error)
        if isinstance(error, Exception):
            check_session()
        raise


def _next(anext_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(anext_)
    async def next_item(self: Any) -> Any:
        place = getattr(self, _PLACE, None)
        if place is None:
            return await anext_(self)
        with place.working():
            item = await _work(place, lambda: anext_(self))
        check_session()
        return item

    return next_item


def _resolved(get_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_stream)
    async def got(self: Any) -> Any:
        place = getattr(self, _PLACE, None)
        if place is None:
            return await get_stream(self)
        with place.working():
            return await _work(place, lambda: get_stream(self))

    return got


def _final(get_final_response: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_final_response)
    async def got(self: Any) -> Any:
        place = getattr(self, _PLACE, None)
        if place is None or place.is_over:
            return await get_final_response(self)
        with place.working():
            response = await _work(place, lambda: get_final_response(self))
        place.end()
        check_session()
        return response

    return got


def _closed(close: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(close)
    async def closed(self: Any, *args: Any, **options: Any) -> None:
        place = getattr(self, _PLACE, None)
        if place is None:
            await close(self, *args, **options)
            return
        with place.working():
            await close(self, *args, **options)
        place.end()

    return closed
