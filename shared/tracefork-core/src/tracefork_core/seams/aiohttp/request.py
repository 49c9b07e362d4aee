"""Read the body that aiohttp is about to send, once, and let aiohttp send the same.

The body is taken from aiohttp's payload as aiohttp would write it, and a payload that writes the
same pieces replaces it. So a generator or a file is read once, a multipart body keeps its boundary,
and the framing on the wire does not change. Compression (`compress=`) happens below, in aiohttp's
writer.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Request

_BODY_METHODS = frozenset({"PATCH", "POST", "PUT"})


class Requests:
    """Convert the requests of one module of aiohttp."""

    def __init__(self, lib: ModuleType) -> None:
        self._pieces = _pieces(lib)
        self._captured: Any = _captured(lib)
        self._bytes = lib.BytesPayload

    async def read(self, request: Any) -> Request:
        """Read the body of `request`, and return the `Request` of the contract."""
        body = await self._body(request)
        headers = [(str(name), str(value)) for name, value in request.headers.items()]
        if request.compress:
            headers = [pair for pair in headers if pair[0].lower() != "content-encoding"]
        if (
            # aiohttp adds this header at the last moment, while it writes.
            request.method in _BODY_METHODS
            and "content-type" not in request.skip_auto_headers
            and "content-type" not in request.headers
        ):
            headers.append(("Content-Type", "application/octet-stream"))
        return Request(request.method, str(request.url), tuple(headers), body, "aiohttp")

    def send_instead(self, request: Any, asked: Request | None) -> None:
        """Change `request` into what a fork sends instead; None changes nothing."""
        if asked is None:
            return
        name = _body_attribute(request)
        original = getattr(request, name)
        if not isinstance(original, self._captured):
            original = self._captured(self._bytes(b""), [], None)
        setattr(request, name, original.with_body(asked.body))
        if "Content-Length" in request.headers:
            request.headers["Content-Length"] = str(len(asked.body))
        if str(request.url) != asked.url:
            request.url = type(request.url)(asked.url)

    async def _body(self, request: Any) -> bytes:
        name = _body_attribute(request)
        payload = getattr(request, name)
        if not payload:
            return b""
        if isinstance(payload, (bytes, bytearray)):
            return bytes(payload)
        if isinstance(payload, self._captured):
            payload = payload.original  # A second attempt reads the rewound file again.
        pieces = self._pieces()
        error: Exception | None = None
        try:
            await payload.write_with_length(pieces, request._get_content_length())
        except Exception as raised:
            # Raised again while the body is sent: aiohttp expects it there, and wraps it.
            error = raised
        setattr(request, name, self._captured(payload, pieces.written, error))
        return b"".join(pieces.written)


def _body_attribute(request: Any) -> str:
    # In the first releases of 3.12 `body` is an attribute, later a property that warns when set.
    return "_body" if hasattr(type(request), "_body") else "body"


def _pieces(lib: ModuleType) -> type:
    class Pieces(lib.abc.AbstractStreamWriter):  # type: ignore[misc,name-defined]
        """A writer that keeps the pieces written to it."""

        def __init__(self) -> None:
            self.written: list[bytes] = []

        async def write(self, chunk: bytes | bytearray | memoryview) -> None:
            self.written.append(bytes(chunk))

        async def write_eof(self, chunk: bytes = b"") -> None: ...

        async def drain(self) -> None: ...

        def enable_compression(self, *args: object, **kwargs: object) -> None: ...

        def enable_chunking(self) -> None: ...

        async def write_headers(self, status_line: str, headers: object) -> None: ...

    return Pieces


def _captured(lib: ModuleType) -> type:
    class Captured(lib.Payload):  # type: ignore[misc,name-defined]
        """A payload that writes what was read from the original, and is like it in all else."""

        def __init__(self, original: Any, pieces: list[bytes], error: Exception | None) -> None:
            self.original = original
            self._pieces = pieces
            self._error = error
            self._headers = original.headers
            self._encoding = original.encoding
            self._filename = original.filename
            self._given_size: int | None = None

        def with_body(self, body: bytes) -> Captured:
            """Return a copy with another body."""
            other = Captured(self.original, [body], None)
            other._given_size = len(body)
            return other

        @property
        def size(self) -> int | None:
            if self._given_size is not None:
                return self._given_size
            return self.original.size  # type: ignore[no-any-return]

        @property
        def consumed(self) -> bool:
            return bool(getattr(self.original, "consumed", False))

        @property
        def autoclose(self) -> bool:
            return bool(getattr(self.original, "autoclose", True))

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            return b"".join(self._pieces).decode(encoding, errors)

        async def write(self, writer: Any) -> None:
            for piece in self._pieces:
                await writer.write(piece)
            if self._error is not None:
                raise self._error

        async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
            return b"".join(self._pieces)

        def _close(self) -> None:
            if hasattr(self.original, "_close"):
                self.original._close()

        async def close(self) -> None:
            if hasattr(self.original, "close"):
                await self.original.close()

    return Captured
