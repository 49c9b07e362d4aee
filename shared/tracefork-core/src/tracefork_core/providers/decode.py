"""Find the wire format of an exchange, by its path and the shape of its request.

Formats that adapters bring (`formats`) are asked where no format of this room fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tracefork_core.providers import anthropic, gemini, realtime, traced
from tracefork_core.providers.call import ModelCall, ToolUse
from tracefork_core.providers.formats import Answer, format_of
from tracefork_core.providers.hosts import provider_of
from tracefork_core.providers.openai_chat import decode_chat, decode_embeddings
from tracefork_core.providers.openai_responses import decode_compaction, decode_responses
from tracefork_core.providers.wire import Headers, Wire, read_wire
from tracefork_core.tape import Exchange


@dataclass(frozen=True, slots=True)
class _Route:
    """How to read requests whose path has this `ending` and that have at least one of `fields`."""

    ending: str
    fields: tuple[str, ...]
    read: Callable[[Wire, str | None], ModelCall]


_METHODS = "POST", "SEND"
"""Requests, and messages on a websocket."""
_ROUTES = (
    _Route("/chat/completions", ("messages",), decode_chat),
    _Route("/responses", ("input", "prompt", "previous_response_id"), decode_responses),
    _Route("/responses/compact", ("input", "previous_response_id"), decode_compaction),
    _Route("/embeddings", ("input",), decode_embeddings),
    _Route("/v1/messages", ("messages",), anthropic.decode_messages),
    _Route("/v1/messages/count_tokens", ("messages",), anthropic.decode_count_tokens),
    _Route("/count-tokens:rawPredict", ("messages",), anthropic.decode_count_tokens),
    _Route(":rawPredict", ("messages",), anthropic.decode_messages),
    _Route(":streamRawPredict", ("messages",), anthropic.decode_messages),
    _Route(":generateContent", ("contents",), gemini.decode_generate_content),
    _Route(":streamGenerateContent", ("contents",), gemini.decode_generate_content),
    _Route(":countTokens", ("contents", "generateContentRequest"), gemini.decode_count_tokens),
    _Route(":embedContent", ("content",), gemini.decode_embed_content),
    _Route(":batchEmbedContents", ("requests",), gemini.decode_embed_content),
)


def is_model_call(method: str, url: str, headers: Headers, body: bytes) -> bool:
    """Return whether a request is a model call in a known format."""
    return decode(method, url, headers, body, None, (), b"") is not None


def is_session_message(url: str, headers: Headers, body: bytes) -> bool:
    """Return whether a message on a websocket belongs to a session with a model."""
    wire = read_wire(url, headers, body, None, (), b"")
    return wire is not None and realtime.is_realtime(wire)


def decode(
    method: str,
    url: str,
    request_headers: Headers,
    request_body: bytes,
    status: int | None,
    response_headers: Headers,
    response_body: bytes,
) -> ModelCall | None:
    """Read an exchange as a model call; None if it is not a model call in a known format.

    It never raises, whatever the bytes are: unreadable values are None or empty, and a truncated
    stream gives what arrived. For a known provider the path alone decides. For other hosts the
    request must have an expected field too, because any server may have a path like `/responses`.
    """
    asked = Request(method, url, request_headers, request_body)
    answered = Answer(status, response_headers, (response_body,)) if status is not None else None
    read = _known(asked, answered) or _of_adapter(asked, answered)
    return read if isinstance(read, ModelCall) else None


class Request(NamedTuple):
    """A request as it leaves the process."""

    method: str
    url: str
    headers: Headers
    body: bytes


def _known(asked: Request, answered: Answer | None) -> ModelCall | None:
    if asked.method.upper() not in _METHODS:
        return None
    answer = (answered.status, answered.headers, answered.body) if answered else (None, (), b"")
    wire = read_wire(asked.url, asked.headers, asked.body, *answer)
    if wire is None:
        return None
    if asked.url.startswith(f"{traced.SCHEME}://"):
        return traced.decode(wire)
    provider = provider_of(wire.host)
    if asked.method == "SEND" and realtime.is_realtime(wire):
        return realtime.decode_realtime(wire, asked.url, provider)
    for route in _ROUTES:
        if wire.path.endswith(route.ending):
            shaped = any(name in wire.request for name in route.fields)
            call = route.read(wire, provider) if shaped or provider else None
            # A websocket carries the events of a stream, whether or not it is asked for one.
            return replace(call, stream=True) if call and asked.method == "SEND" else call
    return None


def _of_adapter(asked: Request, answered: Answer | None) -> ModelCall | ToolUse | None:
    own = format_of(asked.method, asked.url)
    if own is None:
        return None
    try:
        return own.decode(asked, answered)
    except Exception:  # noqa: BLE001 - one adapter's mistake must not hide the rest of a tape
        return None


def model_call(exchange: Exchange) -> ModelCall | None:
    """Return a recorded exchange as a model call, or None if it is not a known one."""
    if not exchange.has_bodies:
        return None
    return decode(
        exchange.method,
        exchange.url,
        exchange.request_headers,
        exchange.request_body,
        exchange.status,
        exchange.response_headers,
        exchange.response_body,
    )


def tool_use(exchange: Exchange) -> ToolUse | None:
    """Return a recorded exchange of an adapter's own seam as a call of a tool, if it is one."""
    if not exchange.has_bodies or format_of(exchange.method, exchange.url) is None:
        return None
    asked = Request(exchange.method, exchange.url, exchange.request_headers, exchange.request_body)
    answered = None
    if exchange.status is not None:
        answered = Answer(exchange.status, exchange.response_headers, tuple(exchange.chunks))
    read = _of_adapter(asked, answered)
    return read if isinstance(read, ToolUse) else None
