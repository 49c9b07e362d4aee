"""What the bodies of Bedrock's models share: settings, token counts, pieces of a stream."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from tracefork_core.adapters.formats import (
    BlobPart,
    Carried,
    GenericPart,
    Json,
    ModelCall,
    Part,
    UriPart,
    Usage,
    Wanted,
    from_base64,
    lenient,
    parameters,
)

METRICS = "amazon-bedrock-invocationMetrics"
"""The field in the last event of a stream with the token counts of the service."""
_MOST_PIECES = 200
_NEUTRAL = {
    "maxTokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "maxTokenCount": "max_tokens",
    "max_gen_len": "max_tokens",
    "max_tokens_to_sample": "max_tokens",
    "p": "top_p",
    "k": "top_k",
}


class Dialect(NamedTuple):
    """How the bodies of one kind of model are read and written.

    Attributes:
        field: what a whole answer must have.
        read: the request, and the answer if there is one, as a model call of a model with a name.
        answer: another answer, as a whole document. Raises UsageError if it cannot be given.
        events: a whole document, as the events of a stream.
        change: the request with changes. Raises UsageError if it cannot express one.
    """

    field: str
    read: Callable[[Carried, str], ModelCall]
    answer: Callable[[Carried, Wanted, str], dict[str, Json]]
    events: Callable[[Carried, dict[str, Json]], list[dict[str, Json]]]
    change: Callable[[Carried, Mapping[str, Any]], dict[str, Json]]


def settings(request: dict[str, Json], without: Collection[str]) -> dict[str, Json]:
    """Return the settings of a request under neutral names where they exist, groups opened."""
    opened: dict[str, Json] = {}
    for key, value in request.items():
        is_group = key in ("inferenceConfig", "textGenerationConfig")
        opened |= lenient.mapping(value) if is_group else {key: value}
    renamed = {_NEUTRAL.get(key, key): value for key, value in opened.items()}
    return parameters(renamed, without)


def usage_of(reported: Json) -> Usage | None:
    """Read the token counts of Converse, of Nova and of the service's metrics and headers."""
    counts = lenient.mapping(reported)
    read, written = (
        lenient.count(lenient.field(counts, f"cache{kind}InputTokens", f"{old}InputTokenCount"))
        for kind, old in (("Read", "cacheRead"), ("Write", "cacheWrite"))
    )
    entered = lenient.count(lenient.field(counts, "inputTokens", "inputTokenCount"))
    left = lenient.count(lenient.field(counts, "outputTokens", "outputTokenCount"))
    if entered is None and left is None:
        return None
    # Tokens that come from the cache or go into it are counted apart.
    return Usage(lenient.total(entered, read, written), left, read, written, None, counts)


def metrics_of(events: Collection[dict[str, Json]]) -> Json:
    """Return the service's own counts at the end of a stream; None if it was cut off before."""
    return next((event[METRICS] for event in events if METRICS in event), None)


def attachment(kind: str, block: dict[str, Json]) -> Part:
    """Read an image, a document, a video or a recording, under its own name if it has one."""
    source, form = lenient.mapping(block.get("source")), lenient.text(block.get("format")) or ""
    mime_type = mimetypes.guess_type(f"x.{form}")[0] if form else None
    if data := lenient.text(source.get("bytes")):
        blob = from_base64(data, kind, mime_type)
        return BlobPart(kind, blob.mime_type, blob.content)
    if uri := lenient.text(lenient.mapping(source.get("s3Location")).get("uri")):
        return UriPart(kind, mime_type, uri)
    return GenericPart(kind, block)


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of 8 characters, or of more so that there are at most 200."""
    size = max(8, -(-len(text) // _MOST_PIECES))
    return (text[start : start + size] for start in range(0, len(text), size))


def tokens(text: str) -> int:
    """Estimate the tokens of a text, at four characters a token."""
    return 1 + len(text) // 4


def derived_id(*facts: object) -> UUID:
    """Return an id that is the same each time for the same facts."""
    return UUID(bytes=sha256(lenient.compact(list(facts)).encode()).digest()[:16], version=4)
