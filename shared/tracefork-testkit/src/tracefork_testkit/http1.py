"""HTTP/1.1: read requests from bytes, write deliveries to a transport."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from tracefork_testkit.dialect import Headers, Json, encode
from tracefork_testkit.script import Hold

Ending = Literal["complete", "silence", "reset", "truncate", "misframed"]
MAX_HEAD = 1 << 20
REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}


class BadRequestError(Exception):
    """The bytes are not a request that this server can read."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived; `path` is the raw target with its query."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int

    def header(self, name: str) -> str | None:
        """Return the first header of that name, ignoring case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)

    def json(self) -> Json:
        """Return the body as a JSON object; raise ValueError if it is not one."""
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError(f"expected a JSON object, got {type(value).__name__}")
        return value


@dataclass(slots=True)
class Delivery:
    """An answer and how to send it: one network write for each chunk.

    `ending` other than "complete" happens after `sent` chunks, before the head if `sent` is None.
    """

    status: int
    headers: Headers
    chunks: Iterable[bytes]
    chunked: bool = False
    delay: float = 0.0
    chunk_delay: float = 0.0
    hold: Hold | None = None
    ending: Ending = "complete"
    sent: int | None = None

    @property
    def at_once(self) -> bool:
        """Return whether the whole answer can be written without waiting."""
        return not (self.delay or self.chunk_delay or self.hold) and self.ending == "complete"

    def head(self) -> bytes:
        """Return the status line and headers."""
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.chunked:
            lines.append("transfer-encoding: chunked")
        else:
            self.chunks = list(self.chunks)
            length = sum(map(len, self.chunks))
            lines.append(f"content-length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def frames(self) -> Iterator[bytes]:
        """Yield the body as it is framed, without the final chunk."""
        for chunk in self.chunks:
            yield b"%x\r\n%b\r\n" % (len(chunk), chunk) if self.chunked else chunk


def json_delivery(status: int, value: object, headers: Headers | None = None) -> Delivery:
    """Return an answer whose body is JSON."""
    return Delivery(
        status, [("content-type", "application/json"), *(headers or [])], [encode(value)]
    )


@dataclass(slots=True)
class RequestReader:
    """Cut the bytes of one connection into requests."""

    connection: int
    buffer: bytearray = field(default_factory=bytearray)
    _head: tuple[str, str, tuple[tuple[str, str], ...]] | None = None
    _length: int | None = None
    close: bool = False
    expects_continue: bool = False

    def next(self) -> ReceivedRequest | None:
        """Return the next whole request, or None; raise BadRequestError."""
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        body = self._read_chunked() if self._length is None else self._read_sized(self._length)
        if body is None:
            return None
        (method, path, headers), self._head = self._head, None
        return ReceivedRequest(method, path, headers, body, self.connection)

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self.buffer) > MAX_HEAD:
                raise BadRequestError(f"the request head is larger than {MAX_HEAD} bytes")
            return False
        lines = bytes(self.buffer[:end]).decode("latin-1").split("\r\n")
        del self.buffer[: end + 4]
        try:
            method, path, version = lines[0].split(" ")
            headers = tuple(_header(line) for line in lines[1:])
        except ValueError as error:
            raise BadRequestError(f"expected a request head, got {lines[0]!r}") from error
        known = {name.lower(): value for name, value in headers}
        self._length = int(known.get("content-length", 0))
        if "chunked" in known.get("transfer-encoding", "").lower():
            self._length = None
        self.close = version == "HTTP/1.0" or known.get("connection", "").lower() == "close"
        self.expects_continue = known.get("expect", "").lower() == "100-continue"
        self._head = (method, path, headers)
        return True

    def _read_sized(self, length: int) -> bytes | None:
        if len(self.buffer) < length:
            return None
        body = bytes(self.buffer[:length])
        del self.buffer[:length]
        return body

    def _read_chunked(self) -> bytes | None:
        out, at = bytearray(), 0
        while True:
            line = self.buffer.find(b"\r\n", at)
            if line < 0:
                return None
            try:
                size = int(self.buffer[at:line].split(b";")[0], 16)
            except ValueError as error:
                raise BadRequestError("expected a chunk size") from error
            if len(self.buffer) < line + 2 + size + 2:
                return None
            if size == 0:
                del self.buffer[: line + 4]
                return bytes(out)
            out += self.buffer[line + 2 : line + 2 + size]
            at = line + 2 + size + 2


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise ValueError(line)
    return name, value.strip()
