"""Write answers of sessions over websockets, for forks: one event is one message of the server."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.lenient import Json, mapping, mappings, parse
from tracefork_core.providers.openai_responses_answer import responses_stream
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import events, sse_bytes

_ONLY_OVER_HTTP = "response.in_progress"
_ENDINGS = ("response.completed", "response.failed", "response.incomplete")


def realtime_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a response as the events of the Realtime API, which has those of Responses but two."""
    for event in events(b"".join(responses_stream(question, document))):
        body = mapping(parse(event.data))
        if event.event == _ONLY_OVER_HTTP:
            continue
        if event.event in _ENDINGS:
            body["type"] = "response.done"
        body.pop("sequence_number", None)
        yield sse_bytes(body)


def live_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a generation as the messages of Gemini Live: its parts, its calls, and the end."""
    for candidate in mappings(document.get("candidates")):
        parts = mappings(mapping(candidate.get("content")).get("parts"))
        calls: list[Json] = [part["functionCall"] for part in parts if "functionCall" in part]
        shown: list[Json] = [part for part in parts if "functionCall" not in part]
        if shown:
            yield sse_bytes({"serverContent": {"modelTurn": {"role": "model", "parts": shown}}})
        if calls:
            yield sse_bytes({"toolCall": {"functionCalls": calls}})
    usage = document.get("usageMetadata")
    yield sse_bytes({"serverContent": {"turnComplete": True}, "usageMetadata": usage})
