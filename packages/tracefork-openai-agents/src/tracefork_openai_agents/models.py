"""Prepare the model of each turn: its name for the steps, its client for this session and loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial, wraps
from typing import Any
from weakref import WeakKeyDictionary

from agents.models import openai_provider
from agents.run_internal import run_loop

from tracefork_core import bind
from tracefork_core.adapters import Patches, in_session
from tracefork_openai_agents.steps import model_name

_ORIGINAL = "_tracefork_original"
_attached: dict[int, object] = {}


def put_in(patches: Patches) -> None:
    """Give each run of a session the name of its model, and clients of its own event loop."""
    patches.wrap(run_loop, "get_model", partial(_prepared, patches))
    patches.wrap(openai_provider, "shared_http_client", _one_per_loop)


def attached_agents() -> dict[int, object]:
    """Return the attached agents, by id: agents are not hashable."""
    return _attached


def _prepared(patches: Patches, get_model: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_model)
    def got(agent: Any, run_config: Any) -> Any:
        model = get_model(agent, run_config)
        name = getattr(model, "model", None)
        model_name.set(name if isinstance(name, str) and name else "model")
        if id(agent) in _attached:
            _bind(patches, model)
        return model

    return got


def _bind(patches: Patches, model: Any) -> None:
    """Give a model of an attached agent a client that is recorded with `ambient=False` too."""
    client = getattr(model, "_client", None)
    if client is None or hasattr(client, _ORIGINAL):
        return
    bound: Any = bind(client)
    setattr(bound, _ORIGINAL, client)
    model._client = bound  # noqa: SLF001 - as the SDK itself sets it
    patches.at_undo(partial(setattr, model, "_client", client))


def _one_per_loop(shared: Callable[[], Any]) -> Callable[[], Any]:
    """Share the pool of connections among runs of one event loop, not among loops.

    The SDK keeps one pool for the process. Once a loop is closed, its connections fail in the next
    one: in the second fork of a blame, say.
    """
    clients: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @wraps(shared)
    def shared_http_client() -> Any:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is None or not in_session():
            return shared()
        if loop not in clients:
            clients[loop] = openai_provider.DefaultAsyncHttpx2Client()
        return clients[loop]

    return shared_http_client
