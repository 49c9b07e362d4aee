"""Bind a client by hand: no ambient patching, any session."""

from __future__ import annotations

from typing import TypeVar

from tracefork_core.errors import UsageError
from tracefork_core.seams.aiohttp import client as aiohttp_client
from tracefork_core.seams.httpx import client as httpx_client
from tracefork_core.seams.requests import client as requests_client

C = TypeVar("C")


def bind(client: C) -> C:
    """Return `client` with its exchanges crossing the seam of whatever session is current.

    Takes clients of httpx and httpx2 and sessions of aiohttp and requests (a copy comes back, the
    original is untouched), and SDK clients that hold an httpx or httpx2 client (`openai.OpenAI`,
    `anthropic.AsyncAnthropic`, …: their own `copy` comes back).

    Raises:
        UsageError: nothing of a kind we know was found in `client`.
    """
    if httpx_client.is_client(client):
        return httpx_client.bind_client(client)  # type: ignore[no-any-return]
    if aiohttp_client.is_client(client):
        return aiohttp_client.bind_client(client)  # type: ignore[no-any-return]
    if requests_client.is_client(client):
        return requests_client.bind_client(client)  # type: ignore[no-any-return]
    inner = getattr(client, "_client", None)
    if httpx_client.is_client(inner) and hasattr(client, "copy"):
        return client.copy(http_client=httpx_client.bind_client(inner))  # type: ignore[no-any-return]
    raise UsageError(
        f"tracefork: cannot bind {type(client).__module__}.{type(client).__qualname__}. Pass a "
        "client of httpx, httpx2, aiohttp or requests, or an SDK client that holds one of httpx or "
        "httpx2."
    )
