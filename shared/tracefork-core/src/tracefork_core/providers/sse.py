"""Read server-sent events as the WHATWG standard defines them, and write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tracefork_core.providers.lenient import compact

# Only these end a line. `str.splitlines` also splits at U+2028, which JSON may hold unescaped.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"

_MAX_DELTAS = 200


@dataclass(frozen=True, slots=True)
class SseEvent:
    """A server-sent event; `data` is its data lines, joined by newlines."""

    data: str
    event: str = "message"
    id: str = ""


class SseDecoder:
    """Decode events from chunks split anywhere, even inside a character or a line end."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._at_start = True
        self._after_cr = False
        self._data: list[str] = []
        self._event = ""
        self._id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes, and return the events that they complete."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        head, *rest = _LINE_END.split(chunk)
        self._partial.append(head)
        if not rest:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = [b"".join(self._partial), *rest[:-1]]
        self._partial = [rest[-1]]
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> list[SseEvent]:
        """Return the unfinished event at the end of the body, if any.

        The standard drops it, but tracefork also reads truncated bodies.
        """
        lines = [b"".join(self._partial), b""]
        self._partial = []
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, raw: bytes) -> SseEvent | None:
        if self._at_start:
            raw = raw.removeprefix(_BOM)
            self._at_start = False
        if not raw:
            return self._dispatch()
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        data, self._data = self._data, []
        event, self._event = self._event, ""
        return SseEvent("\n".join(data), event or "message", self._id) if data else None


def events(body: bytes) -> Iterator[SseEvent]:
    """Iterate over the events of a whole body, including an unfinished last one."""
    decoder = SseDecoder()
    yield from decoder.feed(body)
    yield from decoder.close()


def sse_bytes(value: object, event: str | None = None, end: str = "\n") -> bytes:
    """Write one server-sent event."""
    head = f"event: {event}{end}" if event else ""
    return f"{head}data: {compact(value)}{end}{end}".encode()


def pieces(text: str) -> list[str]:
    """Split a text into deltas of 8 characters, or of more so that there are at most 200."""
    size = max(8, -(-len(text) // _MAX_DELTAS))
    return [text[start : start + size] for start in range(0, len(text), size)]
