"""Bind chat models: their exchanges cross the seam without ambient patching.

LangChain caches its HTTP clients process-wide: two models with the same settings share one client
object. So that client is never touched. What changes is the *reference* to it, in this one model
and its SDK objects, from the shared client to a copy whose transports cross the seam.
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

# google-genai has a session of aiohttp for each event loop, and gets it nowhere else.
_GETS_SESSIONS = "_get_aiohttp_session"
# Kept here for as long as the copy lives: an SDK's client closes its pool when it is collected.
_originals: weakref.WeakKeyDictionary[object, object] = weakref.WeakKeyDictionary()


def bind(model: M) -> M:
    """Let a chat model's exchanges cross the seam of whatever session is current; return it.

    The same object comes back, and copies of it (`bind_tools`, `with_config`, …) are bound with
    it. Outside a session nothing changes; binding twice is binding once. An SDK client that you
    handed to several models is bound for all of them.

    Raises:
        UsageError: no HTTP client of a kind we know was found in `model`.
    """
    found = held_clients(model)
    if not found:
        raise UsageError(_refusal(model))
    copies: dict[object, object] = {}
    for reference in found:
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
    """Return what gets a holder's sessions, bound; it does not keep the holder alive."""
    get = getattr(type(holder), _GETS_SESSIONS)
    owner = weakref.ref(holder)

    async def session() -> object:
        found = await get(owner())
        return bound_copy(found) if is_http_client(found) else found

    return session


def _refusal(model: BaseChatModel) -> str:
    """Say why a model cannot be bound, and what to do."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    if any(type(part).__module__.startswith("botocore") for part in vars(model).values()):
        return (
            f"tracefork: cannot bind {name}: it asks through botocore, which no seam crosses yet, "
            "ambient ones included; tracefork-bedrock is to bring that one. ChatAnthropicBedrock "
            "asks for the same models over an HTTP client, and can be bound."
        )
    return (
        f"tracefork: cannot bind {name}: it holds no client of httpx, httpx2 or aiohttp. Record "
        "and replay with ambient=True (the default), which covers clients of those wherever they "
        "are, and those that are made as they are used."
    )
