"""Wire formats that adapters bring: how their requests read, are answered and are changed.

The formats of this room are those of providers that are asked over HTTP. A seam of an adapter's own
has requests in a form that only it knows: a call of an MCP server, a call of a model of Bedrock.
The adapter describes that form by a `Format`, in the group of entry points `tracefork.formats`.
They are loaded at the first request that no format of this room fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from tracefork_core.providers.call import ModelCall, ToolUse
from tracefork_core.providers.lenient import Json
from tracefork_core.providers.wire import Headers

GROUP = "tracefork.formats"
"""The group of entry points whose values are a `Format`."""


class Asked(Protocol):
    """A request as it leaves the process."""

    @property
    def method(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A response whose body is split into `chunks` as the network would deliver them."""

    status: int
    headers: Headers
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The chunks, joined."""
        return b"".join(self.chunks)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a fork wants a request to be answered with.

    Attributes:
        text: what a model says, or a tool returns.
        tool_calls: what a model calls, as (name, arguments).
        document: the JSON of the whole answer, if `has_document`.
        status: the status of an error whose message is `text`; None for no error.
        error: the service's name of that error, if it was given: see `Format.status_of`.
    """

    text: str | None = None
    tool_calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    document: Json = None
    has_document: bool = False
    status: int | None = None
    error: str | None = None


class Format(Protocol):
    """One wire format. Its methods get requests that it `reads`, and bytes that may be hostile.

    A format of an adapter's own seam may also have `check_exception(seam, name)`, which raises a
    `UsageError` if the library of that seam has no exception of this name.
    """

    def reads(self, method: str, url: str) -> bool:
        """Return whether requests with this method and URL have this format."""

    def decode(self, asked: Asked, answered: Answer | None) -> ModelCall | ToolUse | None:
        """Return what a request asks and, if it was answered, what came of it.

        It must not raise: unreadable values are None or empty. None if it asks neither a model nor
        a tool.
        """

    def encode(self, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
        """Return an answer to a request, as the caller's library would read it from the wire.

        Ids that an answer repeats from its request, and what else it needs, may come from the
        recorded one; None if nothing was recorded.

        Raises:
            UsageError: the request cannot be answered like this; the message says with what it can.
        """

    def reword(self, asked: Asked, changes: Mapping[str, object]) -> tuple[str, bytes]:
        """Return the URL and the body of a request with changes.

        `changes` has the names of the attributes of `tracefork_core.Edit`, without those that are
        not changed; `values` are by JSON pointer.

        Raises:
            UsageError: the format cannot express a change.
        """

    def status_of(self, error: str) -> int | None:
        """Return the HTTP status of an error that the service itself names so.

        A fork that fails with that name then asks `encode` for the service's answer. None if the
        name is that of an exception, which the caller's library raises.
        """


@lru_cache(maxsize=1)
def _formats() -> tuple[Format, ...]:
    from importlib.metadata import entry_points

    return tuple(point.load() for point in entry_points(group=GROUP))


@lru_cache(maxsize=1024)
def format_of(method: str, url: str) -> Format | None:
    """Return the adapter's format of requests with this method and URL, if there is one."""
    return next((one for one in _formats() if one.reads(method, url)), None)
