"""Events as a stream that a browser reads with `EventSource`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

_BREATH = 5.0
"""Seconds without news, after which a comment tells whether the viewer is still there."""
_encode = msgspec.json.encode


def stream(events: AsyncIterator[tuple[str, object]]) -> StreamingResponse:
    """Return events as a stream; those without a name only show that the viewer is still there."""
    return StreamingResponse(_lines(events), media_type="text/event-stream")


async def _lines(events: AsyncIterator[tuple[str, object]]) -> AsyncIterator[bytes]:
    said = time.monotonic()
    async for name, document in events:
        if name:
            yield b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(document))
        elif time.monotonic() - said < _BREATH:
            continue
        else:
            yield b":\n\n"
        said = time.monotonic()
