"""Bind chat models: record and replay them without ambient patching.

LangChain caches its HTTP clients process-wide: two models with the same settings share one client
object. So binding never changes that client. It replaces the *reference* to the client, in this one
model and its SDK objects, with a copy of the client whose transports cross the seam.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from typing import TypeVar

from langchain_core.language_models import BaseChatModel

from tracefork_core import UsageError
from tracefork_core import bind as bound_copy
from tracefork_langgraph.clients import held_clients, holders, is_http_client

M = TypeVar("M", bound=BaseChatModel)

# google-genai has one aiohttp session per event loop, and only this method returns it.
_GETS_SESSIONS = "_get_aiohttp_session"
# Keep the original as long as the copy lives: a collected SDK client closes the shared pool.
_originals: weakref.WeakKeyDictionary[object, object] = weakref.WeakKeyDictionary()


def bind(model: M) -> M:
    """Record and replay a chat model in the current session; return it.

    It returns the same object, and copies of it (`bind_tools`, `with_config`, …) are bound too.
    Outside a session nothing changes. A second call changes nothing. If you passed one SDK client
    to several models, it is bound for all of them.

    Raises:
        UsageError: `model` holds no client of httpx, httpx2 or aiohttp.
    """
    references = held_clients(model)
    if not references:
        raise UsageError(_refusal(model))
    copies: dict[object, object] = {}
    for reference in references:
        client = reference.value
        if client not in _originals:
            if client not in copies:
                copies[client] = _bound(client)
            reference.put(copies[client])
    for holder in holders(model):
        if hasattr(type(holder), _GETS_SESSIONS):
            vars(holder)[_GETS_SESSIONS] = _bound_sessions(holder)
    return model


def unbind(model: M) -> M:
    """Give a chat model its own HTTP clients back; return it."""
    for reference in held_clients(model):
        reference.put(_originals.get(reference.value, reference.value))
    for holder in holders(model):
        if hasattr(type(holder), _GETS_SESSIONS):
            vars(holder).pop(_GETS_SESSIONS, None)
    return model


def _bound(client: object) -> object:
    copy = bound_copy(client)
    _originals[copy] = client
    return copy


def _bound_sessions(holder: object) -> Callable[[], Awaitable[object]]:
    """Return a function that gets a holder's sessions, bound, without keeping the holder alive."""
    get = getattr(type(holder), _GETS_SESSIONS)
    owner = weakref.ref(holder)

    async def session() -> object:
        client = await get(owner())
        return bound_copy(client) if is_http_client(client) else client

    return session


def _refusal(model: BaseChatModel) -> str:
    """Return the message that says why a model cannot be bound, and what to do."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    if any(type(part).__module__.startswith("botocore") for part in vars(model).values()):
        return (
            f"tracefork: cannot bind {name}: it sends requests through botocore, which tracefork "
            "does not record yet, not even with ambient=True. tracefork-bedrock is planned for it. "
            "ChatAnthropicBedrock calls the same models through an HTTP client and can be bound."
        )
    return (
        f"tracefork: cannot bind {name}: it holds no client of httpx, httpx2 or aiohttp. Record "
        "and replay with ambient=True (the default): that covers such clients wherever they are, "
        "including clients that are created during the run."
    )
