"""Write Anthropic messages: make one from text and tool calls, and stream any of them."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.draft import Draft
from tracefork_core.providers.lenient import Json, compact, mapping, mappings, text
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import pieces, sse_bytes

_THINKING = ("thinking", "redacted_thinking")
_ENDING = ("stop_reason", "stop_sequence", "stop_details", "container")
_DELTAS = {"text": "text", "thinking": "thinking"}


def messages_document(draft: Draft) -> dict[str, Json]:
    """Return the message; like the provider, it has no block for empty text."""
    return {
        "model": draft.model,
        "id": draft.id("msg_01", 22),
        **{key: value for key, value in draft.before.items() if key != "stop_details"},
        "type": "message",
        "role": "assistant",
        "content": [*_thinking(draft), *_blocks(draft)],
        "stop_reason": "tool_use" if draft.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(draft),
    }


def messages_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Yield a message as events, from message_start to message_stop."""
    usage = mapping(document.get("usage"))
    opened = document | {"content": []} | {key: None for key in _ENDING if key in document}
    yield _event("message_start", message=opened | {"usage": usage | {"output_tokens": 1}})
    for index, block in enumerate(mappings(document.get("content"))):
        deltas = list(_deltas(block))
        start = _opening(block) if deltas else block
        yield _event("content_block_start", index=index, content_block=start)
        if index == 0:
            yield _event("ping")
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {key: document[key] for key in _ENDING if key in document}
    yield _event("message_delta", delta=ending, usage=usage)
    yield _event("message_stop")


def _event(kind: str, **fields: Json) -> bytes:
    return sse_bytes({"type": kind, **fields}, kind)


def _thinking(draft: Draft) -> list[Json]:
    # With thinking on, Anthropic refuses a request with a tool call but not the thinking before it.
    if not (draft.is_unchanged or draft.calls):
        return []
    blocks = mappings(draft.before.get("content"))
    return [block for block in blocks if block.get("type") in _THINKING]


def _blocks(draft: Draft) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": draft.text}] if draft.text else []
    for part, call in enumerate(draft.calls):
        blocks.append(
            {
                "type": "tool_use",
                "id": draft.call_id("toolu_01", 22, part),
                "name": call.name,
                "input": call.object_for("Anthropic"),
            }
        )
    return blocks


def _usage(draft: Draft) -> dict[str, Json]:
    if draft.is_unchanged and draft.reported:
        return draft.reported
    shown = {key: value for key, value in draft.reported.items() if key != "output_tokens_details"}
    return {
        "input_tokens": draft.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        **shown,
        "output_tokens": draft.output_tokens,
    }


def _opening(block: dict[str, Json]) -> dict[str, Json]:
    kind = block.get("type")
    if kind == "text":
        cited: dict[str, Json] = {"citations": []} if block.get("citations") else {}
        return {**block, "text": "", **cited}
    if kind == "thinking":
        return {**block, "thinking": "", "signature": ""}
    return {**block, "input": {}}


def _deltas(block: dict[str, Json]) -> Iterator[dict[str, Json]]:
    kind = text(block.get("type")) or ""
    for citation in mappings(block.get("citations")):
        yield {"type": "citations_delta", "citation": citation}
    if kind in _DELTAS:
        for piece in pieces(text(block.get(kind)) or ""):
            yield {"type": f"{kind}_delta", kind: piece}
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block.get("signature") or ""}
    if kind.endswith("tool_use"):
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in pieces(compact(block["input"])) if block.get("input") else ():
            yield {"type": "input_json_delta", "partial_json": piece}
