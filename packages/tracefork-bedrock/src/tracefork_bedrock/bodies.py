"""Response bodies between urllib3, which reads them, and botocore, which parses them.

`HeardBody` wraps the live one: each piece that botocore gets of it is a piece on the tape.
`RecordedBody` returns the same pieces from a tape. botocore's own parser of event streams, its
`StreamingBody` and its checks of lengths and checksums run on both.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from tracefork_bedrock.failures import body_exception_of, failure_of, is_of_the_wire
from tracefork_core.adapters import Failure, Live, Recorded, crossing_seam

GIVEN_UP = (KeyboardInterrupt, SystemExit, GeneratorExit)


class HeardBody(io.IOBase):
    """A live body that records what is read of it."""

    def __init__(self, raw: Any, live: Live) -> None:
        self._raw = raw
        self._live = live

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, *args: Any, **options: Any) -> Iterator[bytes]:
        pieces = self._raw.stream(*args, **options)
        while data := self._pull(lambda: next(pieces, b"")):
            self._live.chunk(data)
            yield data
        self._live.end()

    def read(self, amt: int | None = None, *args: Any, **options: Any) -> bytes:
        data = self._pull(lambda: self._raw.read(amt, *args, **options))
        if data:
            self._live.chunk(data)
        is_whole = amt is None or amt < 0 or (amt > 0 and not data)
        if is_whole or self._raw.length_remaining == 0:
            self._live.end()
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._raw.tell())

    def close(self) -> None:
        self._live.abandon()
        self._raw.close()

    @property
    def closed(self) -> bool:
        return bool(self._raw.closed)

    def _pull(self, read: Callable[[], bytes]) -> bytes:
        try:
            with crossing_seam():
                return read()
        except GIVEN_UP:
            self._live.cancel()
            raise
        except Exception as error:
            if is_of_the_wire(error):
                self._live.fail(failure_of(error))
            raise


class RecordedBody(io.IOBase):
    """A body from a tape, with what botocore uses of a response of urllib3."""

    def __init__(self, answer: Recorded, status: int, headers: Any, reason: str) -> None:
        self.status = status
        self.headers = headers
        self.reason = reason
        self._answer = answer
        self._held = b""
        self._told = 0
        self._is_ended = self._is_closed = False
        length = headers.get("content-length", "")
        self._left = int(length) if length.isdecimal() else None
        # `StreamingBody.set_socket_timeout` looks for the socket here.
        socket = SimpleNamespace(settimeout=lambda _: None)
        self._fp = SimpleNamespace(fp=SimpleNamespace(raw=SimpleNamespace(_sock=socket)))

    def stream(self, amt: int = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:
        while data := self._take(None):
            yield data

    def read(self, amt: int | None = None, *args: Any, **options: Any) -> bytes:
        if amt is None or amt < 0:
            return b"".join(iter(lambda: self._take(None), b""))
        data = b""
        while len(data) < amt and (piece := self._take(amt - len(data))):
            data += piece
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._told

    def close(self) -> None:
        self._is_closed = True
        self._answer.close()

    @property
    def closed(self) -> bool:
        return self._is_closed

    def release_conn(self) -> None: ...

    def _take(self, amount: int | None) -> bytes:
        """Return the next recorded piece, at most `amount` bytes of it; nothing at the end."""
        if self._is_closed:
            return b""
        self._pull()
        cut = len(self._held) if amount is None else amount
        data, self._held = self._held[:cut], self._held[cut:]
        self._told += len(data)
        if self._left is not None and data:
            self._left -= len(data)
            if self._left <= 0 and not self._held:
                self._pull()  # urllib3 does not read up to the end if it knows the length.
        return data

    def _pull(self) -> None:
        if self._held or self._is_ended:
            return
        piece = self._answer.receive_chunk()
        if isinstance(piece, Failure):
            raise body_exception_of(piece)
        self._held, self._is_ended = piece or b"", piece is None
