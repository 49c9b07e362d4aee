"""The answer to an auxiliary request that the tape does not hold: an error, and the run goes on."""

from __future__ import annotations

import json

from tracefork_core.exchange.contract import Head

STATUS = 400


class NotHeld:
    """A response that says so, to which whoever asked has to do without an answer.

    Every SDK takes a 400 for final, and tells its caller.
    """

    def __init__(self, method: str, url: str) -> None:
        message = (
            f"tracefork: {method} {url} counts tokens and is not on the tape. It is not sent "
            "during a replay; the run goes on without it."
        )
        error = {"type": "tracefork_not_held", "code": "tracefork", "message": message}
        document = {"type": "error", "error": error, "message": message}
        self._body: bytes | None = json.dumps(document).encode()

    def receive_head(self) -> Head:
        headers = (
            ("content-type", "application/json"),
            ("content-length", str(len(self._body or b""))),
            ("x-should-retry", "false"),
        )
        return Head(STATUS, "Bad Request", headers)

    async def areceive_head(self) -> Head:
        return self.receive_head()

    def receive_chunk(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    async def areceive_chunk(self) -> bytes | None:
        return self.receive_chunk()

    def close(self) -> None:
        self._body = None
