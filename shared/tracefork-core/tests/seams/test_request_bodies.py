"""A request body is read once, compared as it would be sent, and sent unchanged."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit import ProviderServer

PIECES = [b"one ", b"two ", b"three"]


def made() -> Iterator[bytes]:
    """A body that can be read once."""
    yield from PIECES


async def made_async() -> AsyncIterator[bytes]:
    """A body that can be read once, on an event loop."""
    for piece in PIECES:
        await asyncio.sleep(0)
        yield piece


def body_of(library: Any, kind: str) -> dict[str, Any]:
    """Return the options that send a body of some kind with some library."""
    is_aiohttp = library.lib is aiohttp
    match kind:
        case "generator":
            return {"content": made_async() if library.is_async else made()}
        case "multipart" if is_aiohttp:
            form = aiohttp.FormData({"name": "value"})
            form.add_field("file", io.BytesIO(b"held"), filename="a.txt")
            return {"data": form}
        case "multipart":
            return {"data": {"name": "value"}, "files": {"file": ("a.txt", b"held")}}
        case "form":
            return {"data": {"name": "value", "other": "ä"}}
        case "text" if is_aiohttp:
            return {"data": "grüße"}
        case "text":
            return {"content": "grüße"}
        case _:
            return {"content": b"\x00\xff plain"}


KINDS = ["bytes", "text", "form", "multipart", "generator"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_body_replays(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any], kind: str
) -> None:
    """The tape holds what the server got, and the replay of the same agent matches it."""

    def act(url: str) -> Any:
        return library.one(url, "/echo", method="POST", **body_of(library, kind))

    trip = round_trip(provider, act)
    received = provider.requests[0]
    with Tape.open(trip.path) as tape:
        taped = tape.exchanges[0].request_body
    if kind == "multipart":
        # Its boundary is drawn anew each time: the answer shows the one that was recorded.
        assert trip.recorded.body == trip.replayed.body == received.body
        assert b"held" in taped
    else:
        assert trip.replayed == trip.recorded
        assert taped == received.body == trip.recorded.body


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_framed_as_without_a_session(
    library: Any, provider: ProviderServer, tmp_path: Path, kind: str
) -> None:
    """With a length, or in chunks."""
    for tape in (None, tmp_path / "sent.tape"):
        if tape is None:
            library.one(provider.url, "/echo", method="POST", **body_of(library, kind))
        else:
            with record(tape):
                library.one(provider.url, "/echo", method="POST", **body_of(library, kind))
    plain, recorded = provider.requests
    if kind != "multipart":
        assert recorded.headers == plain.headers
        assert recorded.body == plain.body
    for name in ("content-length", "transfer-encoding"):
        assert recorded.header(name) == plain.header(name)


def test_a_body_that_can_be_read_once_is_sent_once(
    library: Any, provider: ProviderServer, tmp_path: Path
) -> None:
    """A redirect of a generator fails as it does without a session: it is used up."""

    def outcome() -> tuple[str, list[bytes]]:
        before = len(provider.requests)
        try:
            body = body_of(library, "generator")
            said = str(library.one(provider.url, "/redirect?to=/echo", method="POST", **body))
        except Exception as error:
            said = repr(error)
        return said, [request.body for request in provider.requests[before:]]

    plain = outcome()
    with record(tmp_path / "once.tape"):
        assert outcome() == plain


def test_another_body_diverges(library: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """Two forms that differ in one field are two requests."""
    url = provider.url
    with record(tmp_path / "form.tape"):
        library.one(url, "/echo", method="POST", data={"name": "value"})
    with pytest.raises(DivergenceError), replay(tmp_path / "form.tape"):
        library.one(url, "/echo", method="POST", data={"name": "another"})
