"""Take an exchange out of Bedrock's transport, and put another answer into it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass

from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.errors import DAMAGED, HEADER, error_in, error_of, name_of
from tracefork_bedrock.formats.event_stream import MEDIA_TYPE, Frame
from tracefork_bedrock.formats.paths import STREAMS, Path
from tracefork_bedrock.formats.reading import derived_id, tokens
from tracefork_core.adapters.formats import Answer, Asked, Carried, Json, ModelError, Wanted
from tracefork_core.adapters.formats import lenient as le

Headers = tuple[tuple[str, str], ...]

_MOST_BYTES = 16 * 2**20
_COUNTS = {"x-amzn-bedrock-input-token-count": "inputTokens"}
_COUNTS |= {"x-amzn-bedrock-output-token-count": "outputTokens"}
_COUNTS |= {"x-amzn-bedrock-cache-read-input-token-count": "cacheReadInputTokens"}
_COUNTS |= {"x-amzn-bedrock-cache-write-input-token-count": "cacheWriteInputTokens"}
# They describe the recorded bytes, so they are not copied to other ones.
_OF_THE_BYTES = frozenset(
    "connection content-encoding content-length content-type transfer-encoding".split()
)


@dataclass(frozen=True, slots=True)
class Taken:
    """An exchange out of its transport.

    Attributes:
        carried: the request and the answer as JSON.
        error: what failed, before the answer or in the middle of it.
        counts: the token counts that the headers of the answer tell.
    """

    carried: Carried
    error: ModelError | None = None
    counts: dict[str, Json] | None = None


def take_off(path: Path, asked: Asked, answered: Answer | None) -> Taken:
    """Return a request, and its answer if there is one, without the transport."""
    request = le.mapping(_json(asked.body))
    streams = path.operation in STREAMS
    if answered is None:
        return Taken(Carried(request, streams=streams))
    if error := error_of(answered.status, answered.headers, answered.body):
        return Taken(Carried(request, answered.status, streams=streams), error)
    counts = counts_in(answered.headers)
    if not streams:
        body = le.mapping(_json(answered.body))
        return Taken(Carried(request, answered.status, body), None, counts)
    frames, error = read_frames(answered.body)
    events = tuple(event for frame in frames if (event := _event(path, frame)))
    return Taken(Carried(request, answered.status, {}, events, streams=True), error, counts)


def read_frames(body: bytes) -> tuple[list[Frame], ModelError | None]:
    """Return the frames of a stream, and the error that it ends with, if there is one."""
    if len(body) > _MOST_BYTES:
        return [], ModelError(DAMAGED, f"it has {len(body)} bytes: at most {_MOST_BYTES} are read")
    frames, damage = event_stream.decode(body)
    failed = next((error for frame in frames if (error := error_in(frame))), None)
    if failed is None and damage is not None and "cut off" not in damage:
        failed = ModelError(DAMAGED, damage)
    return frames, failed


def _event(path: Path, frame: Frame) -> dict[str, Json]:
    """Return the event of a frame as JSON, under its name if it is one of Converse's."""
    if frame.kind != "event":
        return {}
    told = le.mapping(_json(frame.payload))
    if path.operation == "ConverseStream":
        return {frame.name: told}
    return le.mapping(_json(unpacked(told.get("bytes"))))


def unpacked(stated: Json) -> bytes:
    """Return the bytes of a field that is base64; none if it is not."""
    try:
        return base64.b64decode(le.text(stated) or "")
    except (binascii.Error, ValueError):
        return b""


def put_on(path: Path, events: Iterable[dict[str, Json]], headers: Headers, asked: Asked) -> Answer:
    """Return events as a streamed answer, a frame in each piece."""
    return put_raw([framed(path, event) for event in events], headers, asked)


def put_raw(frames: Iterable[Frame], headers: Headers, asked: Asked) -> Answer:
    """Return frames as a streamed answer."""
    kept = _kept(headers) or (("x-amzn-bedrock-content-type", "application/json"),)
    head = (("content-type", MEDIA_TYPE), *_identity(asked, kept))
    return Answer(200, head, tuple(map(event_stream.encode, frames)))


def framed(path: Path, event: dict[str, Json]) -> Frame:
    """Return the frame of an event."""
    if path.operation == "ConverseStream":
        ((name, told),) = event.items()
        return event_stream.event(name, le.compact(told).encode())
    packed = base64.b64encode(le.compact(event).encode()).decode()
    return event_stream.event("chunk", le.compact({"bytes": packed}).encode())


def whole(document: Json, headers: Headers, asked: Asked) -> Answer:
    """Return a document as an answer that is not streamed."""
    body = le.compact(document).encode()
    kept = tuple(
        (name, str(tokens(body.decode())) if name.lower() == _WRITTEN else value)
        for name, value in _kept(headers)
    )
    head = (("content-type", "application/json"), ("content-length", str(len(body))))
    return Answer(200, (*head, *_identity(asked, kept)), (body,))


_WRITTEN = "x-amzn-bedrock-output-token-count"


def failed(wanted: Wanted, asked: Asked) -> Answer:
    """Return an error that comes instead of an answer."""
    status = wanted.status or 500
    name = wanted.error or name_of(status)
    body = le.compact({"message": wanted.text or name}).encode()
    head = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        (HEADER, name[:1].upper() + name[1:]),
    )
    return Answer(status, _identity(asked, head), (body,))


def failed_within(wanted: Wanted, recorded: Answer | None, asked: Asked) -> Answer:
    """Return an answer that fails in the middle: half of the recorded frames, then the error."""
    frames, _ = read_frames(recorded.body) if recorded is not None else ([], None)
    events = [frame for frame in frames if frame.kind == "event"]
    told = le.compact({"message": wanted.text or wanted.error}).encode()
    broken = event_stream.exception(wanted.error or "internalServerException", told)
    kept = _kept(tuple(recorded.headers)) if recorded is not None else ()
    head = (("content-type", MEDIA_TYPE), *_identity(asked, kept))
    half = events[: len(events) // 2]
    return Answer(200, head, tuple(map(event_stream.encode, [*half, broken])))


def counts_in(headers: Iterable[tuple[str, str]]) -> dict[str, Json] | None:
    """Return the token counts that headers tell; None if they tell none."""
    told = {name.lower(): value for name, value in headers}
    found: dict[str, Json] = {
        key: int(told[name])
        for name, key in _COUNTS.items()
        if told.get(name, "").isascii() and told.get(name, "").isdecimal() and len(told[name]) < 16
    }
    return found or None


def _identity(asked: Asked, headers: Headers) -> Headers:
    """Return headers with the id of the request, which clients report with an error."""
    if any(name.lower() == "x-amzn-requestid" for name, _ in headers):
        return headers
    made = derived_id(asked.url, asked.body.decode("latin-1"))
    return (("x-amzn-requestid", str(made)), *headers)


def _kept(headers: Headers) -> Headers:
    return tuple(pair for pair in headers if pair[0].lower() not in _OF_THE_BYTES)


def _json(data: bytes) -> Json:
    return le.parse(data) if le.is_bounded(data) else None
