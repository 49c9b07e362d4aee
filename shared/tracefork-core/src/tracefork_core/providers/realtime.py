"""Decode sessions over websockets: OpenAI's Realtime API, also on Azure and xAI, and Gemini Live.

An exchange is one message of the client, with the server's messages up to the client's next. It is
a model call where the message asks for an answer, or where the model answered: it also does so by
itself, when it hears that the user stopped speaking. The request of a call has only what was sent
with it. What came before in the session is in the exchanges before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from tracefork_core.providers import gemini, openai_responses
from tracefork_core.providers.call import ModelCall, Usage
from tracefork_core.providers.lenient import Json, count, field, mapping, mappings, text
from tracefork_core.providers.wire import Wire

_BUFFERS = "input_audio_buffer.", "output_audio_buffer."
_SETTINGS = frozenset(
    {
        "session.update",
        "transcription_session.update",
        "conversation.item.create",
        "conversation.item.delete",
        "conversation.item.retrieve",
        "conversation.item.truncate",
        "response.cancel",
    }
)
_SENT_AGAIN = frozenset(
    {
        "session.update",
        "transcription_session.update",
        "conversation.item.create",
        "conversation.item.delete",
    }
)
_GEMINI_CONTENT = "client_content", "clientContent"
_GEMINI_INPUT = "realtime_input", "realtimeInput"
_GEMINI_RESULT = "tool_response", "toolResponse"


def is_realtime(wire: Wire) -> bool:
    """Return whether a message belongs to a session of one of these APIs."""
    message = wire.request
    kind = text(message.get("type")) or ""
    if wire.path.endswith("/realtime"):
        return kind in _SETTINGS or kind == "response.create" or kind.startswith(_BUFFERS)
    known = ("setup", *_GEMINI_CONTENT, *_GEMINI_INPUT, *_GEMINI_RESULT)
    return _is_gemini(wire) and any(name in message for name in known)


def _is_gemini(wire: Wire) -> bool:
    return "BidiGenerateContent" in wire.path.rpartition("/")[2]


def sets_up(message: dict[str, Json]) -> bool:
    """Return whether a message only adds to a session, so that it can be sent again."""
    if message.get("type") in _SENT_AGAIN or "setup" in message:
        return True
    content = field(message, *_GEMINI_CONTENT)
    return isinstance(content, dict) and not _completes(content)


def decode_realtime(wire: Wire, url: str, provider: str | None) -> ModelCall | None:
    """Read a message and its answers; None if no model was asked."""
    if not is_realtime(wire):
        return None
    read = _gemini if _is_gemini(wire) else _openai
    return read(wire, url, provider)


def _openai(wire: Wire, url: str, provider: str | None) -> ModelCall | None:
    events = [
        event
        for event in wire.chunks
        if (text(event.get("type")) or "").startswith(("response.", "error"))
    ]
    kinds = {event.get("type") for event in events}
    asks = wire.request.get("type") == "response.create"
    if not asks and not kinds & {"response.output_item.done", "response.done"}:
        return None
    asked = mapping(wire.request.get("response")) if asks else {}
    body = openai_responses.fold(events)
    # An answer that began with an earlier message may end here. Each part is shown once.
    ended = [mapping(e.get("item")) for e in events if e.get("type") == "response.output_item.done"]
    parts = mappings(body.get("output")) if asks else ended
    items: list[Json] = [_with_words(item) for item in parts]
    whole = replace(
        wire,
        request={"input": [], **asked, "model": _model(url)},
        body={**body, "output": items},
        chunks=(),
    )
    call = openai_responses.decode_responses(whole, provider)
    usage = _usage(mapping(body.get("usage")))
    return replace(call, api="openai.realtime", stream=True, usage=usage)


def _with_words(item: dict[str, Json]) -> Json:
    """Return an item of an answer with the text of what it says aloud."""
    if not isinstance(item.get("content"), list):
        return item
    blocks: list[Json] = [
        {"type": "text", "text": block["transcript"]} if text(block.get("transcript")) else block
        for block in mappings(item.get("content"))
    ]
    return {**item, "content": blocks}


def _model(url: str) -> str | None:
    asked = parse_qs(urlsplit(url).query)
    names = asked.get("model") or asked.get("deployment")
    return names[0] if names else None


def _usage(usage: dict[str, Json]) -> Usage | None:
    if not usage:
        return None
    read = mapping(field(usage, "input_token_details", "input_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_input_tokens=count(read.get("cached_tokens")),
        reported=usage,
    )


def _gemini(wire: Wire, url: str, provider: str | None) -> ModelCall | None:
    """Read a turn as if it had been asked over HTTP, and its answer as one candidate."""
    content = mapping(field(wire.request, *_GEMINI_CONTENT))
    results = mapping(field(wire.request, *_GEMINI_RESULT))
    answered: list[Json] = [*_answered(wire.chunks)]
    asks = _completes(content) if content else bool(results)
    if not asks and not answered:
        return None
    contents: list[Json] = [*mappings(content.get("turns"))]
    if answers := mappings(field(results, "functionResponses", "function_responses")):
        contents.append({"role": "tool", "parts": [{"functionResponse": it} for it in answers]})
    candidate: Json = {"content": {"role": "model", "parts": answered}, "finishReason": None}
    usage = [{"usageMetadata": chunk.get("usageMetadata")} for chunk in wire.chunks]
    chunks: list[dict[str, Json]] = [*usage, {"candidates": [candidate] if answered else []}]
    turn = replace(wire, request={"contents": contents}, chunks=tuple(chunks))
    return replace(gemini.decode_generate_content(turn, provider), api="gemini.live", stream=True)


def _completes(content: dict[str, Json]) -> bool:
    return field(content, "turnComplete", "turn_complete") is not False


def _answered(chunks: tuple[dict[str, Json], ...]) -> Iterator[Json]:
    """Yield the parts of the answer: its text, or what was said, and the calls of tools."""
    for chunk in chunks:
        content = mapping(chunk.get("serverContent"))
        for part in mappings(mapping(content.get("modelTurn")).get("parts")):
            if "text" in part:
                yield part
        if said := text(mapping(content.get("outputTranscription")).get("text")):
            yield {"text": said}
        for call in mappings(mapping(chunk.get("toolCall")).get("functionCalls")):
            yield {"functionCall": call}
