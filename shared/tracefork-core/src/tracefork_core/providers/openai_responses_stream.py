"""A response sent as the typed events of its stream."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers.encoding import pieces, sse
from tracefork_core.providers.lenient import Json, mappings, text
from tracefork_core.providers.question import Question

_Event = tuple[str, dict[str, Json]]

_ENDINGS = ("completed", "incomplete", "failed")
_UNDONE: dict[str, Json] = {
    "status": "in_progress",
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
    "output": [],
    "usage": None,
}
# Items whose writing is streamed: the field, and the name it has in the events.
_WRITTEN = {
    "function_call": ("arguments", "function_call_arguments"),
    "mcp_call": ("arguments", "mcp_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
    "code_interpreter_call": ("code", "code_interpreter_call_code"),
}


def responses_stream(question: Question, document: dict[str, Json]) -> Iterator[bytes]:
    """Send a response as events, numbered from response.created to its ending."""
    for number, (kind, fields) in enumerate(_events(document)):
        yield sse({"type": kind, **fields, "sequence_number": number}, kind)


def _events(document: dict[str, Json]) -> Iterator[_Event]:
    opened = document | _UNDONE
    yield "response.created", {"response": opened}
    yield "response.in_progress", {"response": opened}
    for index, item in enumerate(mappings(document.get("output"))):
        yield "response.output_item.added", {"output_index": index, "item": _opening(item)}
        at: dict[str, Json] = {"item_id": item.get("id"), "output_index": index}
        for kind, fields in _of_item(item):
            yield f"response.{kind}", at | fields
        yield "response.output_item.done", {"output_index": index, "item": item}
    status = document.get("status")
    ending = status if isinstance(status, str) and status in _ENDINGS else "completed"
    yield f"response.{ending}", {"response": document}


def _opening(item: dict[str, Json]) -> dict[str, Json]:
    kind = text(item.get("type")) or "message"
    blank: dict[str, Json] = {"status": "in_progress"} if "status" in item else {}
    if kind == "message":
        blank["content"] = []
    elif kind == "reasoning":
        blank |= {name: [] for name in ("summary", "content") if item.get(name)}
    elif kind in _WRITTEN:
        blank[_WRITTEN[kind][0]] = ""
    return {**item, **blank}


def _of_item(item: dict[str, Json]) -> Iterator[_Event]:
    kind = text(item.get("type")) or "message"
    if kind in _WRITTEN:
        field, event = _WRITTEN[kind]
        yield from _written(event, {}, field, item.get(field))
    for index, part in enumerate(mappings(item.get("summary"))):
        at: dict[str, Json] = {"summary_index": index}
        yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        yield from _written("reasoning_summary_text", at, "text", part.get("text"))
        yield "reasoning_summary_part.done", {**at, "part": part}
    if kind in ("message", "reasoning"):
        for index, part in enumerate(mappings(item.get("content"))):
            yield from _of_part({"content_index": index}, part)


def _of_part(at: dict[str, Json], part: dict[str, Json]) -> Iterator[_Event]:
    field = "refusal" if part.get("type") == "refusal" else "text"
    blank: dict[str, Json] = {"annotations": []} if "annotations" in part else {}
    yield "content_part.added", {**at, "part": {**part, field: "", **blank}}
    if part.get("type") == "output_text":
        yield from _written("output_text", at | {"logprobs": []}, "text", part.get("text"))
        for index, annotation in enumerate(mappings(part.get("annotations"))):
            noted: dict[str, Json] = {"annotation_index": index, "annotation": annotation}
            yield "output_text.annotation.added", at | noted
    else:
        kind = text(part.get("type")) or "output_text"
        yield from _written(kind, at, field, part.get(field))
    yield "content_part.done", {**at, "part": part}


def _written(event: str, at: dict[str, Json], field: str, value: Json) -> Iterator[_Event]:
    if not isinstance(value, str):
        return
    for piece in pieces(value):
        yield f"{event}.delta", {**at, "delta": piece}
    yield f"{event}.done", {**at, field: value}
