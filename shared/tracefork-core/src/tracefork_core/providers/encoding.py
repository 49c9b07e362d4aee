"""Values as the bytes that go out: JSON, server-sent events, and text cut into deltas."""

from __future__ import annotations

import json

from tracefork_core.errors import UsageError

_MAX_DELTAS = 200


def compact(value: object) -> str:
    """Write JSON without spaces; UsageError for what JSON or UTF-8 has no form for."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        written.encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(error.object[error.start])
        raise UsageError(
            f"the text holds {surrogate}, half of a surrogate pair, which no provider can send:"
            " write the whole character"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"this cannot be written as JSON: {error}") from error
    return written


def sse(value: object, event: str | None = None, end: str = "\n") -> bytes:
    """Write one server-sent event."""
    head = f"event: {event}{end}" if event else ""
    return f"{head}data: {compact(value)}{end}{end}".encode()


def pieces(text: str) -> list[str]:
    """Cut a text into deltas of a word or so, longer ones where there would be very many."""
    size = max(8, -(-len(text) // _MAX_DELTAS))
    return [text[start : start + size] for start in range(0, len(text), size)]
