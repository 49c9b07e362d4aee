"""What answers a request that a replay does not send and that need not be on its tape."""

from __future__ import annotations

import json
from typing import ClassVar, Literal

from tracefork_core.exchange.contract import Head, Headers, Request


def not_held(method: str, url: str) -> StandIn:
    """Return an error: whoever asks about tokens has to do without an answer.

    Every SDK takes a 400 for final, and tells its caller.
    """
    message = (
        f"tracefork: {method} {url} is about tokens and is not on the tape. It is not sent "
        "during a replay; the run goes on without it."
    )
    error = {"type": "tracefork_not_held", "code": "tracefork", "message": message}
    document = {"type": "error", "error": error, "message": message}
    body = json.dumps(document).encode()
    headers = ("content-type", "application/json"), ("x-should-retry", "false")
    return StandIn(400, "Bad Request", headers, body)


def acknowledged(request: Request) -> StandIn:
    """Return what a collector says that has taken everything: an empty message of OTLP."""
    kind = next((v for name, v in request.headers if name.lower() == "content-type"), "")
    body = b"{}" if "json" in kind else b""
    return StandIn(200, "OK", (("content-type", kind),), body)


class StandIn:
    """A response that no server gave."""

    is_live: ClassVar[Literal[False]] = False

    def __init__(self, status: int, reason: str, headers: Headers, body: bytes) -> None:
        length = ("content-length", str(len(body)))
        self._head = Head(status, reason, (*headers, length))
        self._body: bytes | None = body or None

    def receive_head(self) -> Head:
        return self._head

    async def areceive_head(self) -> Head:
        return self.receive_head()

    def receive_chunk(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    async def areceive_chunk(self) -> bytes | None:
        return self.receive_chunk()

    def close(self) -> None:
        self._body = None
