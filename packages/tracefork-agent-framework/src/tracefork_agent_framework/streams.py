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
from functools import partial, wraps
from typing import Any

from agent_framework import ResponseStream

from tracefork_agent_framework.places import Place
from tracefork_core.adapters import Patches

_PLACE = "_tracefork_place"


def put_in(patches: Patches) -> None:
    """Let streams work in the steps that they carry."""
    patches.wrap(ResponseStream, "__anext__", _in_place)
    patches.wrap(ResponseStream, "_get_stream", _in_place)
    patches.wrap(ResponseStream, "get_final_response", partial(_in_place, ends=True))
    if hasattr(ResponseStream, "close"):  # Agent Framework 1.0 has no way to close one.
        patches.wrap(ResponseStream, "close", partial(_in_place, ends=True))


def within(place: Place, start: Callable[[], Any]) -> Any:
    """Return the result of a call, whose work is done in a step."""
    result = start()
    if not isinstance(result, ResponseStream):
        return _awaited(place, result)
    if not hasattr(result, _PLACE):
        setattr(result, _PLACE, place)
    return result


async def _awaited(place: Place, result: Awaitable[Any]) -> Any:
    with place.working(ends=True):
        return await result


def _in_place(method: Callable[..., Any], *, ends: bool = False) -> Callable[..., Any]:
    @wraps(method)
    async def worked(self: Any, *args: Any, **options: Any) -> Any:
        place: Place | None = getattr(self, _PLACE, None)
        if place is None:
            return await method(self, *args, **options)
        with place.working(ends=ends):
            return await method(self, *args, **options)

    return worked
