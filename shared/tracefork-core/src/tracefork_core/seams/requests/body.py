"""Response bodies of requests: urllib3 itself reads them, from a connection of ours.

A response of urllib3 reads its body from a response of `http.client`: bytes, or for a chunked body
lines and bytes of the framing. `Heard` wraps the live one and records what is read; `Replayed`
returns the same bytes from a tape, each recorded piece as a chunk if the body is chunked. So
decoding, lengths and errors are urllib3's own in both, and an agent gets the same pieces.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

from tracefork_core.exchange.contract import Failure, Live
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.requests.failures import Failures

GIVEN_UP = (KeyboardInterrupt, SystemExit)


class BrokenError(Exception):
    """The recorded body was cut short here."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.kind)


class Pieces(Protocol):
    """The source of a replayed body: an exchange of a tape, or a refusal."""

    def receive_chunk(self) -> bytes | Failure | None: ...

    def close(self) -> None: ...


class Heard:
    """A live body that records what is read of it."""

    def __init__(self, inner: Any, live: Live, *, enforced: bool) -> None:
        self._inner = inner
        self._live = live
        self._enforced = enforced
        self._left: int | None = None
        self._crlf = b""
        self._is_trailing = self._is_breaking = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def fp(self) -> Heard | None:
        return None if self._inner.fp is None else self

    def read(self, *amount: Any) -> bytes:
        with self._breaking():
            data = self._inner.read(*amount)
        return self._record(data, amount)

    def read1(self, *amount: Any) -> bytes:
        with self._breaking():
            data = self._inner.read1(*amount)
        return self._record(data, amount)

    def readline(self, *limit: Any) -> bytes:
        """Read a line of the framing: the size of the next chunk, or a trailer after the last."""
        with self._breaking():
            line: bytes = self._inner.fp.readline(*limit)
        if self._left is None and not self._is_trailing:
            try:
                self._left = int(line.split(b";", 1)[0], 16)
            except ValueError:
                self._is_breaking = True
                return line
            if self._left == 0:
                self._is_trailing = True
                self._live.end()
        return line

    def _safe_read(self, amount: int) -> bytes:
        if not self._left:
            crlf, self._crlf = self._crlf, b""
            return crlf
        with self._breaking():
            data: bytes = self._inner._safe_read(amount)
            self._left -= len(data)
            if self._left == 0:
                # Before the chunk is recorded: if this fails, the agent does not get it either.
                self._crlf = self._inner._safe_read(2)
                self._left = None
        self._live.chunk(data)
        return data

    def close(self) -> None:
        if not self._is_breaking:
            self._live.abandon()
        self._inner.close()

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Read below the seam; if that fails, urllib3 closes this next, and raises the reason."""
        try:
            with crossing_seam():
                yield
        except Exception:
            self._is_breaking = True
            raise

    def _record(self, data: bytes, amount: tuple[Any, ...]) -> bytes:
        if data:
            self._live.chunk(data)
        wants = not amount or amount[0] != 0
        closed = getattr(self._inner, "isclosed", bool)()
        if closed or (wants and not data):
            # urllib3 raises an error if the body is shorter than announced, if that is enforced.
            self._is_breaking = self._enforced and bool(getattr(self._inner, "length", None))
            if not self._is_breaking:
                self._live.end()
        return data


class Replayed:
    """A body from the tape, with the interface of a response of `http.client`."""

    def __init__(self, answer: Pieces, message: http.client.HTTPMessage, method: str) -> None:
        self._answer = answer
        self._piece = b""
        self._ended = False
        self._method = method
        self._is_framed = False
        self.msg = message
        declared = message.get("content-length", "")
        self._length = int(declared) if declared.isascii() and declared.isdigit() else None
        if message.get("transfer-encoding") or method == "HEAD":
            self._length = None
        self.closed = self._is_read = False

    @property
    def fp(self) -> Replayed | None:
        return None if self._is_read else self

    def read(self, amount: int | None = None) -> bytes:
        if amount is None or amount < 0:
            return b"".join(iter(self._next, b""))
        return self._next(amount) if amount else b""

    def read1(self, amount: int = -1) -> bytes:
        return self._next(amount if amount > 0 else None) if amount else b""

    def readline(self, limit: int = -1) -> bytes:
        """Return the size of the next piece as a line of the framing; 0 at the end."""
        if self._ended:
            return b""
        self._pull()
        self._is_framed = bool(self._piece)
        return b"%x\r\n" % len(self._piece)

    def _safe_read(self, amount: int) -> bytes:
        if not self._piece and self._is_framed:
            self._is_framed = False
            return b"\r\n"
        data, self._piece = self._piece[:amount], self._piece[amount:]
        return data

    def isclosed(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._ended = self._is_read = self.closed = True
        self._answer.close()

    def _next(self, amount: int | None = None) -> bytes:
        """Return the next recorded piece, at most `amount` bytes of it."""
        self._pull()
        cut = len(self._piece) if amount is None else amount
        data, self._piece = self._piece[:cut], self._piece[cut:]
        if self._length is not None and data:
            self._length -= len(data)
            if self._length <= 0 and not self._piece:
                self._pull()  # urllib3 does not read up to the end if it knows the length.
        self._is_read = self._ended
        return data

    def _pull(self) -> None:
        if self._piece or self._ended:
            return
        piece = self._answer.receive_chunk()
        if isinstance(piece, Failure):
            raise BrokenError(piece)
        self._piece = piece or b""
        self._ended = piece is None


@lru_cache(maxsize=8)
def crossing(kind: Any, failures: Failures) -> Any:
    """Return a subclass of urllib3's response that records, and raises again, a broken body."""

    class Crossing(kind):  # type: ignore[misc]
        tracefork_live: Live | None = None

        def read(self, *amount: Any, **options: Any) -> Any:
            with _recording_failure(self.tracefork_live, failures):
                return super().read(*amount, **options)

        def read1(self, *amount: Any, **options: Any) -> Any:
            with _recording_failure(self.tracefork_live, failures):
                return super().read1(*amount, **options)

        def read_chunked(self, *amount: Any, **options: Any) -> Iterator[bytes]:
            with _recording_failure(self.tracefork_live, failures):
                yield from super().read_chunked(*amount, **options)

    Crossing.__name__, Crossing.__qualname__ = kind.__name__, kind.__qualname__
    Crossing.__module__ = kind.__module__
    return Crossing


@contextmanager
def _recording_failure(live: Live | None, failures: Failures) -> Iterator[None]:
    try:
        yield
    except BrokenError as broken:
        raise failures.in_body(broken.failure) from None
    except GIVEN_UP:
        if live is not None:
            live.cancel()
        raise
    except Exception as error:
        if live is not None and failures.is_of_the_wire(error):
            live.fail(failures.failure(error))
        raise
