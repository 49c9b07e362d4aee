"""Decide which requests of a fork may have a side effect, and word the error of a refused one."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote

from tracefork_core.exchange.contract import SEND, Request
from tracefork_core.exchange.kind import is_auxiliary
from tracefork_core.tape import Exchange

Writes = Literal["refuse", "stub", "allow"]
"""What happens to a live call that may have side effects: an error, the recorded answer, or the
call."""

_READS = frozenset({"GET", "HEAD", "OPTIONS"})


def refusal(request: Request) -> str:
    """Return the error text for a call that a fork refuses."""
    return (
        f"tracefork: the fork stopped before {request.method} {request.url.partition('?')[0]}, "
        "because the call may repeat a side effect. Pass --allow-writes (writes='allow') to make "
        f"it, or --stub-writes (writes='stub') to return its recorded result.{reading(request.url)}"
    )


def reading(url: str) -> str:
    """Return how to say that what a refused request asks for only reads."""
    names = tool_names(url)
    if not names:
        return (
            " If a tool only reads, record it so: `tracefork record --tool MODULE:NAME=read`, or "
            "@tracefork.tool(effect='read') above the function."
        )
    name = min(names, key=len)
    return (
        f" If it only reads, pass --reads {name} (reads=['{name}']), or declare it in the code: "
        "@tracefork.tool(effect='read') above the function."
    )


def tool_names(url: str) -> frozenset[str]:
    """Return the names of the tool that is asked at a URL: "github/find" and "find", say.

    The name of a tool may have a place before it, a server's or a toolset's. A URL of HTTP asks for
    no tool.
    """
    scheme, _, place = url.partition(":")
    if place.startswith("//") or not scheme:
        return frozenset()
    return frozenset({unquote(place), unquote(place).rpartition("/")[2]})


def may_write(request: Request, *, is_auxiliary: bool, reads: frozenset[str]) -> bool:
    """Return whether a request may have a side effect: unless it is known to read, it may."""
    if reads and reads & tool_names(request.url):
        return False
    if request.effect is not None:
        return request.effect == "write"
    if request.method in _READS or is_auxiliary:
        return False
    return not (asks_model(request) or is_of_session(request))


def asks_model(request: Request) -> bool:
    """Return whether a request is a question to a model."""
    from tracefork_core.providers.decode import is_model_call

    return is_model_call(request.method, request.url, request.headers, request.body)


def is_of_session(request: Request) -> bool:
    """Return whether a request is a message of a session with a model, over a websocket."""
    if request.method != SEND:
        return False
    from tracefork_core.providers.decode import is_session_message

    return is_session_message(request.url, request.headers, request.body)


def is_recorded_write(exchange: Exchange, reads: frozenset[str] = frozenset()) -> bool:
    """Return whether a recorded exchange may have had a side effect; `reads` is as for a `Plan`."""
    if reads and reads & tool_names(exchange.url):
        return False
    headers, body = tuple(exchange.request_headers), exchange.request_body
    aside = exchange.aside
    if aside.effect:
        return aside.effect not in ("read", "pure")
    request = Request(exchange.method, exchange.url, headers, body, aside.seam)
    return may_write(request, is_auxiliary=is_auxiliary(request.method, request.url), reads=reads)
