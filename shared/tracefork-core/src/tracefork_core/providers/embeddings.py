"""OpenAI's embeddings, as OpenAI, Azure and compatible servers speak them."""

from __future__ import annotations

from tracefork_core.providers.call import GenericPart, Message, ModelCall, TextPart
from tracefork_core.providers.failure import failure
from tracefork_core.providers.lenient import Json, items, mappings, text
from tracefork_core.providers.openai_chat import chat_usage
from tracefork_core.providers.parameters import parameters
from tracefork_core.providers.wire import Wire

_SHOWN = ("model", "input")


def decode_embeddings(wire: Wire, provider: str | None) -> ModelCall:
    """Read one request for embeddings: a message for each input and for each vector."""
    return ModelCall(
        operation="embeddings",
        api="openai.embeddings",
        provider=provider,
        request_model=wire.request_model,
        response_model=text(wire.body.get("model")),
        response_id=text(wire.body.get("id")),
        input=tuple(_input(entry) for entry in _entries(wire.request.get("input"))),
        output=tuple(vector(entry.get("embedding")) for entry in mappings(wire.body.get("data"))),
        parameters=parameters(wire.request, _SHOWN),
        usage=chat_usage(wire.body.get("usage")),
        error=failure(wire.status, wire.body),
    )


def vector(value: Json) -> Message:
    """Hold a vector, as numbers or as the base64 it came in."""
    return Message("assistant", (GenericPart("embedding", value),))


def _entries(value: Json) -> list[Json]:
    entries = items(value)
    # A flat list of token ids is one input.
    if isinstance(value, str) or (entries and isinstance(entries[0], int)):
        return [value]
    return entries


def _input(entry: Json) -> Message:
    if isinstance(entry, str):
        return Message("user", (TextPart(entry),))
    return Message("user", (GenericPart("tokens", entry),))
