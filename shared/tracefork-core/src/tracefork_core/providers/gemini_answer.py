"""Write Gemini's generations: make one from text and tool calls, and stream any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracefork_core.providers.draft import Draft
from tracefork_core.providers.lenient import Json, compact, count, field, mapping, mappings, text
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import pieces, sse_bytes

_MOST_CANDIDATES = 8
# Gemini 3 and later refuse a request whose tool call has no signature. This is Google's placeholder
# for a call that no model made. Older models need no signature.
_UNSIGNED = "skip_thought_signature_validator"
_WITHOUT_SIGNATURES = re.compile(r"gemini-[12]\b|gemma|learnlm|unknown")
_COUNTS_OF_OUTPUT = ("candidatesTokensDetails", "thoughtsTokenCount")


def gemini_document(draft: Draft) -> dict[str, Json]:
    """Return the generation, with as many equal candidates as the request asks for (at most 8)."""
    request = draft.question.wire.request
    settings = mapping(field(request, "generationConfig", "generation_config"))
    asked = count(field(settings, "candidateCount", "candidate_count")) or 1
    parts: list[Json] = [{"text": draft.text or ""}] if draft.text or not draft.calls else []
    parts += _calls(draft)
    candidates: list[Json] = [
        {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": index}
        for index in range(min(asked, _MOST_CANDIDATES))
    ]
    return {
        "responseId": draft.id("", 22),
        "modelVersion": draft.model,
        **{key: value for key, value in draft.before.items() if key != "promptFeedback"},
        "candidates": candidates,
        "usageMetadata": _usage(draft),
    }


def gemini_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a generation as events or as a JSON array, as the URL asks."""
    elements = list(_elements(document))
    if question.wants_events:
        yield from (sse_bytes(element, end="\r\n") for element in elements)
        return
    for position, element in enumerate(elements):
        yield (("[" if position == 0 else ",\r\n") + compact(element)).encode()
    yield b"]"


def _calls(draft: Draft) -> Iterator[Json]:
    before = draft.recorded.tool_calls if draft.recorded else ()
    has_ids = any(call.id for call in before)
    for index, call in enumerate(draft.calls):
        function: dict[str, Json] = {"name": call.name, "args": call.object_for("Gemini")}
        if has_ids:
            function["id"] = draft.call_id("", 8, index)
        signature = _signature(draft, call.name, function["args"])
        if not signature and index == 0 and not _WITHOUT_SIGNATURES.search(draft.model):
            signature = _UNSIGNED
        part: dict[str, Json] = {"functionCall": function}
        yield part | ({"thoughtSignature": signature} if signature else {})


def _signature(draft: Draft, name: str, arguments: Json) -> str | None:
    for candidate in mappings(draft.before.get("candidates"))[:1]:
        for part in mappings(mapping(candidate.get("content")).get("parts")):
            call = mapping(field(part, "functionCall", "function_call"))
            if call and (call.get("name"), call.get("args") or {}) == (name, arguments):
                return text(field(part, "thoughtSignature", "thought_signature"))
    return None


def _usage(draft: Draft) -> dict[str, Json]:
    if draft.is_unchanged and draft.reported:
        return draft.reported
    shown = {key: v for key, v in draft.reported.items() if key not in _COUNTS_OF_OUTPUT}
    return {
        "promptTokenCount": draft.input_tokens,
        **shown,
        "candidatesTokenCount": draft.output_tokens,
        "totalTokenCount": draft.input_tokens + draft.output_tokens,
    }


def _elements(document: dict[str, Json]) -> Iterator[dict[str, Json]]:
    head = {key: v for key, v in document.items() if key not in ("candidates", "usageMetadata")}
    usage = mapping(document.get("usageMetadata"))
    asked = {key: value for key, value in usage.items() if key.startswith("prompt")}
    candidates = mappings(document.get("candidates"))
    if not candidates:
        yield document
    for position, candidate in enumerate(candidates):
        content = mapping(candidate.get("content"))
        parts = [piece for part in mappings(content.get("parts")) for piece in _pieces(part)]
        index = count(candidate.get("index"))
        at = position if index is None else index
        for part in parts[:-1]:
            chunk: Json = {"content": {**content, "parts": [part]}, "index": at}
            yield {"candidates": [chunk], "usageMetadata": asked, **head}
        rest: Json = {**candidate, "content": {**content, "parts": parts[-1:]}, "index": at}
        yield {"candidates": [rest], "usageMetadata": usage, **head}


def _pieces(part: dict[str, Json]) -> list[Json]:
    written = text(part.get("text"))
    if written is None:
        return [part]
    # Gemini puts a signature on the last piece of the text that it signs.
    bare = {key: v for key, v in part.items() if key != "thoughtSignature"}
    *before, last = pieces(written)
    return [*({**bare, "text": piece} for piece in before), {**part, "text": last}]
