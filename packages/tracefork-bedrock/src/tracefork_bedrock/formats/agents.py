"""Read and answer what Bedrock runs itself: agents, flows, knowledge bases, guardrails, runtimes.

Such a call is that of a tool: its arguments are the body of the request, and its result is the text
of the answer. Whether it has a side effect is decided by its name (`effects`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.errors import error_of
from tracefork_bedrock.formats.event_stream import Frame
from tracefork_bedrock.formats.paths import Path
from tracefork_bedrock.formats.transport import Headers, put_raw, read_frames, unpacked, whole
from tracefork_core import UsageError
from tracefork_core.adapters.formats import Answer, Asked, Json, ToolUse, Wanted
from tracefork_core.adapters.formats import lenient as le

_PLACES = {"InvokeAgent": "agent", "InvokeInlineAgent": "agent", "InvokeFlow": "flow"}
_CHUNKS = ("InvokeAgent", "InvokeInlineAgent")
STREAMS = (
    *_CHUNKS,
    "AgenticRetrieveStream",
    "InvokeAgentRuntimeCommand",
    "InvokeCodeInterpreter",
    "InvokeFlow",
    "InvokeHarness",
    "OptimizePrompt",
    "RetrieveAndGenerateStream",
)
"""The operations whose answers are event streams."""


def read(path: Path, asked: Asked, answered: Answer | None) -> ToolUse:
    """Return an operation as a call of a tool, with the text that it returned."""
    arguments = le.parse(asked.body)
    place = _PLACES.get(path.operation)
    named = " ".join(part for part in (place, path.id.rpartition("/")[2]) if part)
    result, is_error = _result(answered) if answered is not None else (None, False)
    return ToolUse(path.operation, arguments, named or None, result, is_error)


def _result(answered: Answer) -> tuple[Json, bool]:
    if error := error_of(answered.status, answered.headers, answered.body):
        return f"{error.type}: {error.message}" if error.message else error.type, True
    kind = ",".join(value for name, value in answered.headers if name.lower() == "content-type")
    if event_stream.MEDIA_TYPE in kind or answered.body[:2] == b"\0\0":
        frames, failed = read_frames(answered.body)
        said = "".join(_said(frame) for frame in frames)
        if failed is not None:
            return f"{said}{failed.type}: {failed.message or ''}".rstrip(": "), True
        return said or None, False
    document = le.parse(answered.body)
    if document is None:
        return answered.body.decode("utf-8", "replace")[:10_000] or None, False
    return _text_of(le.mapping(document)) or document, False


def _said(frame: Frame) -> str:
    """Return the text of an event, in one of the places where these services put it."""
    told = le.mapping(le.parse(frame.payload))
    if "bytes" in told:
        return unpacked(told.get("bytes")).decode("utf-8", "replace")
    content = le.mapping(told.get("content"))
    if isinstance(document := content.get("document"), str):
        return document
    delta = le.mapping(told.get("delta"))
    return le.text(told.get("text")) or le.text(delta.get("text")) or _text_of(told)


def _text_of(document: dict[str, Json]) -> str:
    """Return the text of what was retrieved or generated; empty without one."""
    if text := le.text(le.mapping(document.get("output")).get("text")):
        return text
    results = le.field(document, "retrievalResults", "outputs", "content")
    return "\n".join(_texts(le.mappings(results)))


def _texts(results: list[dict[str, Json]]) -> Iterator[str]:
    for result in results:
        content = le.mapping(result.get("content"))
        if text := le.text(content.get("text")) or le.text(result.get("text")):
            yield text


def answer(path: Path, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
    """Return another answer.

    Raises:
        UsageError: the operation cannot be answered like this.
    """
    headers: Headers = tuple(recorded.headers) if recorded is not None else ()
    if wanted.tool_calls:
        raise UsageError(f"tracefork: {path.operation} calls no tools. Give it a text.")
    if wanted.has_document:
        return whole(wanted.document, headers, asked)
    text = wanted.text or ""
    if path.operation in _CHUNKS:
        packed = base64.b64encode(text.encode()).decode()
        return put_raw([event_stream.event("chunk", _written({"bytes": packed}))], headers, asked)
    if path.operation == "RetrieveAndGenerateStream":
        return put_raw([event_stream.event("output", _written({"text": text}))], headers, asked)
    if path.operation == "RetrieveAndGenerate":
        before = le.mapping(le.parse(recorded.body)) if recorded is not None else {}
        session = {"sessionId": before.get("sessionId", "00000000-0000-0000-0000-000000000000")}
        return whole({**session, **before, "output": {"text": text}}, headers, asked)
    if path.operation == "Retrieve":
        found: Json = {"content": {"text": text, "type": "TEXT"}}
        return whole({"retrievalResults": [found]}, headers, asked)
    raise UsageError(
        f"tracefork: {path.operation} is not answered with a text. Give the whole answer:"
        " --replace FILE."
    )


def _written(value: Json) -> bytes:
    return le.compact(value).encode()
