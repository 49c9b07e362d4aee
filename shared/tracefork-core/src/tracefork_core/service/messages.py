"""Turn the requests and tasks of a service into what is on the tape, with the secrets masked.

Credentials in headers and in the query are replaced by an asterisk. Everything else is masked as in
any exchange: the values of secret variables, known tokens, and what the user names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tracefork_core.exchange.contract import Head, Request
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.names import MASK, is_credential, without_secrets
from tracefork_core.tape.digest import sha256, spelled_text
from tracefork_core.tape.served import Arguments, Served

LARGEST = 8 * 1024 * 1024
"""The most bytes of a request's or response's body that are held for the tape."""


class Body:
    """Collects the pieces of a body, up to `LARGEST` bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        """Add a piece that has passed."""
        self.size += len(piece)
        if self.size <= LARGEST:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def whole(self) -> bytes | None:
        """Return the body, or None if it is too large to be held."""
        return b"".join(self._pieces) if self.size <= LARGEST else None


class Incoming(NamedTuple):
    """A request as a server received it."""

    interface: str
    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    root: str
    body: Body


class Outgoing(NamedTuple):
    """A response as an app sent it; its status is None if the app sent none."""

    status: int | None
    headers: Sequence[tuple[str, str]]
    body: Body


def served_request(
    masking: Masking, name: str, run: str, incoming: Incoming, outgoing: Outgoing, outcome: str
) -> Served:
    """Return what is on the tape of a request and its response."""
    whole = incoming.body.whole() if masking.mode != "metadata" else None
    headers = tuple((name.lower(), value) for name, value in incoming.headers)
    path, mark, query = incoming.target.partition("?")
    target = path + mark + (query if masking.mode == "raw" else without_secrets(query))
    masked = masking.request(Request(incoming.method, target, headers, whole or b"", ""))
    text, data = _spelled(masked.body) if whole is not None else (None, None)
    return Served(
        kind="http",
        name=masking.text(name),
        id=masking.text(run),
        interface=incoming.interface,
        method=incoming.method,
        target=spelled_text(masked.url),
        headers=[(name, MASK if is_credential(name) else value) for name, value in masked.headers],
        root=incoming.root,
        text=text,
        data=data,
        size=len(masked.body) if whole is not None else incoming.body.size,
        status=outgoing.status,
        answer=answer_digest(masking, outgoing),
        outcome=outcome,
    )


def answer_digest(masking: Masking, outgoing: Outgoing) -> str | None:
    """Return the sha256 of a response's body, its secrets masked; None if it was too large."""
    whole = outgoing.body.whole()
    if whole is None:
        return None
    body = masking.body(Head(outgoing.status or 0, "", tuple(outgoing.headers)))
    if body is None:
        return sha256(whole)
    body.feed(whole)
    masked = body.finish([whole], whole=True)
    return sha256(whole if masked is None else b"".join(masked.pieces))


def served_call(
    masking: Masking,
    kind: str,
    name: str,
    run: str,
    outcome: str,
    arguments: tuple[Iterable[object], Mapping[str, object]] | None = None,
) -> Served:
    """Return what is on the tape of a task or of any other call."""
    return Served(
        kind=kind,
        name=masking.text(name),
        id=masking.text(run),
        arguments=_as_json(masking, arguments),
        outcome=outcome,
    )


def _as_json(
    masking: Masking, arguments: tuple[Iterable[object], Mapping[str, object]] | None
) -> Arguments | None:
    """Return positional and keyword arguments with their secrets masked; None if not JSON."""
    if arguments is None or masking.mode == "metadata":
        return None
    positional, named = list(arguments[0]), dict(arguments[1])
    try:
        spelled = json.dumps([positional, named], allow_nan=False)
        # Tuples and numbers as keys would come back as something else.
        if json.loads(spelled) != [positional, named]:
            return None
    except (TypeError, ValueError, RecursionError):
        return None
    masked = masking.names({"positional": positional, "named": named})
    return msgspec.convert(masked, Arguments)


def _spelled(body: bytes) -> tuple[str | None, bytes | None]:
    """Return a body as text, or as bytes if it is not UTF-8."""
    try:
        return body.decode(), None
    except UnicodeDecodeError:
        return None, body
