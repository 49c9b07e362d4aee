"""Bind the clients of the models of attached agents, for sessions that are not ambient.

ADK makes a client of Gemini for each event loop, and the other clients when a model is first asked.
So a client is bound where an attached agent asks its model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tracefork_core import bind
from tracefork_core.adapters import Attached, Patches

_BOUND = "_tracefork_bound"
_CACHED = ("_anthropic_client", "_openai_client")
"""Where the models of Anthropic and of OpenAI cache their client."""

ATTACHED = Attached("google_adk")
"""The attached agents and workflows."""


def bind_clients(patches: Patches, model: Any) -> None:
    """Give a model clients that are recorded with `ambient=False` too, until an undo."""
    if not ATTACHED.works_here.get():
        return
    for owner, name, client in _clients(model):
        if client is None or hasattr(owner.get(name), _BOUND):
            continue
        bound: Any = client if hasattr(client, _BOUND) else bind(client)
        setattr(bound, _BOUND, True)
        patches.at_undo(partial(owner.__setitem__, name, owner.get(name)))
        owner[name] = bound


def _clients(model: Any) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield where each client is kept, and the client."""
    api = getattr(getattr(model, "api_client", None), "_api_client", None)
    if api is not None:
        for name in ("_httpx_client", "_async_httpx_client"):
            yield vars(api), name, getattr(api, name)
        # A client that is given here keeps the SDK from using aiohttp.
        yield vars(api._http_options), "httpx_async_client", api._async_httpx_client  # noqa: SLF001
    for name in _CACHED:
        if hasattr(type(model), name):
            yield vars(model), name, getattr(model, name)
