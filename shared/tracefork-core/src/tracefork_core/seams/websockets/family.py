"""Convert the objects and the exceptions of the package `websockets`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracefork_core.exchange.contract import Failure, Head, Headers
from tracefork_core.seams.failures import builtin_of
from tracefork_core.seams.websockets.messages import Message, close_message, closing_of

_CUT = 1006
"""The code of a connection that ended without a close frame."""
_CLOSED = ("ConnectionClosedOK", "ConnectionClosedError")


class Family:
    """Handshakes, close frames and exceptions."""

    name = "websockets"

    def __init__(self) -> None:
        self.exceptions: Any = import_module("websockets.exceptions")
        self.frames: Any = import_module("websockets.frames")
        self.http: Any = import_module("websockets.http11")
        self.headers: Any = import_module("websockets.datastructures").Headers
        self.states: Any = import_module("websockets.protocol").State

    def sent_headers(self, connector: Any) -> Headers:
        """Return the headers that the agent gives to a handshake."""
        return tuple(self.headers(connector.additional_headers or {}).raw_items())

    def head(self, connection: Any) -> Head:
        """Return the answer to the handshake of a live connection."""
        return self._head(connection.response)

    def _head(self, response: Any) -> Head:
        headers = tuple((name, value) for name, value in response.headers.raw_items())
        return Head(response.status_code, response.reason_phrase, headers)

    def response(self, head: Head, body: bytes = b"") -> Any:
        """Return the answer to a handshake as an object of the library."""
        headers = self.headers(head.headers)
        return self.http.Response(head.status, head.reason, headers, body)

    def closing(self, error: BaseException) -> Message | None:
        """Return the close frame that the server sent before a connection was closed."""
        rcvd = getattr(error, "rcvd", None)
        return None if rcvd is None else close_message(int(rcvd.code), rcvd.reason)

    def failure(self, error: BaseException) -> Failure:
        """Return an exception in the form that the tape stores; for a cut connection, its code."""
        kind = type(error).__name__
        if kind not in _CLOSED:
            return Failure(kind, str(error))
        frame = getattr(error, "rcvd", None) or getattr(error, "sent", None)
        text = f"{int(frame.code)} {frame.reason}" if frame is not None else f"{_CUT}"
        return Failure(kind, text.rstrip())

    def exception(self, failure: Failure) -> Exception:
        """Rebuild the exception of a recorded failure."""
        if failure.kind in _CLOSED:
            code, reason = closing_of(failure.message)
            frame = None if code == _CUT else self.frames.Close(code, reason)
            return self.closed(None, frame)
        if (builtin := builtin_of(failure)) is not None:
            return builtin
        kind = getattr(self.exceptions, failure.kind, None)
        if not (isinstance(kind, type) and issubclass(kind, self.exceptions.WebSocketException)):
            kind = self.exceptions.WebSocketException
        # Their constructors take parts of the message, which the tape does not hold.
        shown = {"__str__": lambda _: failure.message, "__module__": kind.__module__}
        made: Any = type(kind.__name__, (kind,), shown)
        error: Exception = made.__new__(made)
        return error

    def closed(self, rcvd: Any, sent: Any, *, rcvd_first: bool = True) -> Exception:
        """Return the exception for a connection that was closed with these frames."""
        both = rcvd is not None and sent is not None
        is_ok = both and rcvd.code in (1000, 1001, 1005) and sent.code in (1000, 1001, 1005)
        kind = (
            self.exceptions.ConnectionClosedOK if is_ok else self.exceptions.ConnectionClosedError
        )
        return kind(rcvd, sent, rcvd_first if both else None)  # type: ignore[no-any-return]

    def rejection(self, error: BaseException) -> tuple[Head, bytes] | None:
        """Return the response that an exception of the handshake carries, if it does."""
        if not isinstance(error, self.exceptions.InvalidStatus):
            return None
        return self._head(error.response), bytes(error.response.body or b"")

    def rejected(self, head: Head, body: bytes) -> Exception:
        """Return the exception for a server that answered the handshake with a response."""
        return self.exceptions.InvalidStatus(self.response(head, body))  # type: ignore[no-any-return]
