"""The event of what a service ran, from which a replay runs it again."""

from __future__ import annotations

import msgspec

from tracefork_core.tape.event import Pairs

SERVED = "served"


class Arguments(msgspec.Struct, frozen=True):
    """The positional and keyword arguments of a task."""

    positional: list[object]
    named: dict[str, object]


class Served(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request or task that a service ran, so that the handler can be run again.

    Attributes:
        kind: "http", "task" or "call".
        name: what ran: the method and the route, or the name of the task or function.
        id: the id in the name of the tape.
        interface: "asgi" or "wsgi" for a request.
        method, target, headers: the request line and the headers, without credentials. `target` is
            the path with the query.
        root: the part of the path where the app is mounted.
        text, data: the body, as text if it is UTF-8. `size` is its length in bytes; a body that is
            too large for the tape has only that.
        arguments: those of a task, if they are JSON.
        status: the status code of the response.
        answer: the sha256 of the response's body, its secrets masked; None if it was too large.
        outcome: "ok", or why it counts as failed.
    """

    kind: str
    name: str
    id: str
    interface: str = ""
    method: str = ""
    target: str = ""
    headers: Pairs = []
    root: str = ""
    text: str | None = None
    data: bytes | None = None
    size: int = 0
    arguments: Arguments | None = None
    status: int | None = None
    answer: str | None = None
    outcome: str = "ok"

    @property
    def body(self) -> bytes | None:
        """The body of the request; None if the tape has only its size."""
        if self.text is not None:
            return self.text.encode()
        return self.data if self.data is not None or self.size else b""
