"""What holds for every HTTP library at once: bind a client of any, know the exceptions of each."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from tracefork_core.errors import UsageError
from tracefork_core.seams.aiohttp import client as aiohttp_client
from tracefork_core.seams.aiohttp import failures as aiohttp_failures
from tracefork_core.seams.httpx import client as httpx_client
from tracefork_core.seams.httpx import family
from tracefork_core.seams.requests import client as requests_client
from tracefork_core.seams.requests import failures as requests_failures

C = TypeVar("C")


def bind(client: C) -> C:
    """Return a copy of `client` whose requests belong to the session that is current at the time.

    Takes clients of httpx and httpx2, sessions of aiohttp and requests, and SDK clients that hold
    an httpx or httpx2 client (`openai.OpenAI`, `anthropic.AsyncAnthropic`, …), which are copied by
    their own `copy`. The original is untouched.

    Raises:
        UsageError: `client` is none of these.
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


def check_kind(seam: str, kind: str) -> None:
    """Check that the library of a seam has an exception of this name; a tool may raise any.

    Raises:
        UsageError: it has none.
    """
    known = _kinds(seam)
    if known and kind.partition("(")[0] not in known:
        raise UsageError(
            f"tracefork: {seam} has no exception {kind} (--fail). Give a status from 400 to 599, "
            f"or one of {', '.join(sorted(known))}."
        )


def _kinds(seam: str) -> frozenset[str]:
    try:
        if seam in ("httpx", "httpx2"):
            return frozenset(family.Family(import_module(seam)).failures)
        if seam == "aiohttp":
            return aiohttp_failures.Failures(import_module(seam)).kinds
        if seam == "requests":
            return requests_failures.Failures(import_module(seam)).kinds
    except ModuleNotFoundError:
        pass  # The agent will fail to import it, too.
    return frozenset()
