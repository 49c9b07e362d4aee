"""Read JSON of any shape without raising, and write JSON.

The bytes are untrusted, so each accessor returns None or an empty value if the type is wrong.
"""

from __future__ import annotations

import json
from typing import TypeAlias

import msgspec

from tracefork_core.errors import UsageError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 128
_LARGEST = 16 * 2**20
_MOST_CONTAINERS, _MOST_VALUES, _MOST_LINES = 300_000, 2_000_000, 600_000
_MOST = 2**53
"""The largest integer that every JSON reader reads exactly."""


def is_bounded(raw: bytes) -> bool:
    """Return whether a body takes bounded time and memory as JSON, or as events.

    An empty list takes three bytes of JSON, and twenty times as many of memory. Two million values
    are those of a large batch of embeddings.
    """
    return len(raw) <= _MOST_CONTAINERS or (  # Then it cannot hold more of anything.
        len(raw) <= _LARGEST
        and raw.count(b"[") + raw.count(b"{") <= _MOST_CONTAINERS
        and raw.count(b",") <= _MOST_VALUES
        and raw.count(b"\n") <= _MOST_LINES
    )


def parse(raw: bytes | str) -> Json:
    """Decode a JSON document; None if it is not JSON or nests deeper than `MAX_DEPTH`."""
    try:
        value: Json = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None
    return value if _nests_little(raw) or _is_shallow(value) else None


def parse_array_prefix(raw: bytes) -> list[Json]:
    """Decode the complete elements of a JSON array that may be truncated."""
    text = raw.decode("utf-8", "replace").lstrip()
    if not text.startswith("["):
        return []
    decoder = json.JSONDecoder()
    elements: list[Json] = []
    position = 1
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return elements
        elements.append(parse(text[position:end]))
        position = end


def mapping(value: Json) -> dict[str, Json]:
    """Return a JSON object unchanged, and an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    """Return a JSON array unchanged, and an empty one for any other value."""
    return value if isinstance(value, list) else []


def mappings(value: Json) -> list[dict[str, Json]]:
    """Return the objects in an array; its other elements are left out."""
    return [item for item in items(value) if isinstance(item, dict)]


def text(value: Json) -> str | None:
    """Return a string that is not empty; None for any other value."""
    return value if isinstance(value, str) and value else None


def count(value: Json) -> int | None:
    """Return an integer from 0 to 2**53; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _MOST:
        return None
    return int(value) if value == int(value) else None


def total(*counts: int | None) -> int | None:
    """Return the sum of the counts that are not None; None if all are None."""
    known = [number for number in counts if number is not None]
    return sum(known) if known else None


def field(source: dict[str, Json], *names: str) -> Json:
    """Return the value of the first of these names that has one; None if none has."""
    return next((source[name] for name in names if source.get(name) is not None), None)


def arguments(value: Json) -> Json:
    """Parse the arguments of a tool call; return them unchanged if they are no JSON object."""
    if not isinstance(value, str):
        return value
    parsed = parse(value)
    return parsed if isinstance(parsed, dict) else value


def _nests_little(raw: bytes | str) -> bool:
    """Return whether a document has too few brackets to nest deeply; most of them have."""
    if isinstance(raw, str):
        return raw.count("[") + raw.count("{") <= MAX_DEPTH
    return raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH


def _is_shallow(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else items(node))
            if isinstance(child, dict | list)
        ]
        if not level:
            return True
    return False


def compact(value: object) -> str:
    """Write JSON without spaces.

    Raises:
        UsageError: JSON or UTF-8 cannot express the value.
    """
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        written.encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(error.object[error.start])
        raise UsageError(
            f"the text contains {surrogate}, half of a surrogate pair, which UTF-8 cannot encode."
            " Write the whole character"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"this cannot be written as JSON: {error}") from error
    return written
