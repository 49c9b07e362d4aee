"""Bind chat models: their exchanges cross the seam without ambient patching.

LangChain caches its HTTP clients process-wide: two models with the same settings share one client
object. So that client is never touched. What changes is the *reference* on the SDK objects of this
one model, from the shared client to a copy whose transports cross the seam.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeVar
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel

from tracefork_core import UsageError
from tracefork_core import bind as bound_copy

M = TypeVar("M", bound=BaseChatModel)

_SDKS = frozenset({"anthropic", "openai"})
_LIBRARIES = ("httpx", "httpx2")
# Kept here for as long as the copy lives: an SDK's client closes its pool when it is collected.
_originals: WeakKeyDictionary[object, object] = WeakKeyDictionary()


def bind(model: M) -> M:
    """Let a chat model's exchanges cross the seam of whatever session is current; return it.

    The same object comes back, and copies of it (`bind_tools`, `with_config`, …) are bound with
    it. Outside a session nothing changes; binding twice is binding once.

    Raises:
        UsageError: no HTTP client of a kind we know was found in `model`.
    """
    if not _swap(model, _bound):
        raise UsageError(
            f"tracefork: cannot bind {type(model).__module__}.{type(model).__qualname__}: it holds "
            f"no client of the SDKs of {' and '.join(sorted(_SDKS))}. Record and replay with "
            "ambient=True (the default), which covers every client of httpx and httpx2."
        )
    return model


def unbind(model: M) -> M:
    """Give a chat model its own HTTP clients back; return it."""
    _swap(model, lambda client: _originals.get(client, client))
    return model


def _bound(client: object) -> object:
    if client in _originals:
        return client
    copy = bound_copy(client)
    _originals[copy] = client
    return copy


def _swap(model: BaseChatModel, other: Callable[[object], object]) -> int:
    """Replace every HTTP client that the SDK objects of a model refer to; return how many."""
    found = 0
    for holder in _sdk_objects(model):
        for name, value in list(vars(holder).items()):
            if _is_http_client(value):
                found += 1
                if (swapped := other(value)) is not value:
                    setattr(holder, name, swapped)
    return found


def _sdk_objects(model: BaseChatModel) -> Iterator[object]:
    """Yield the SDK clients in a model, and their resources (which refer to a client)."""
    for name in ("_client", "_async_client"):
        if isinstance(getattr(type(model), name, None), cached_property):
            getattr(model, name)  # ChatAnthropic makes its clients when they are first used.
    seen: set[int] = set()
    waiting = list(vars(model).values())
    while waiting:
        value = waiting.pop()
        sdk = type(value).__module__.partition(".")[0]
        if sdk not in _SDKS or id(value) in seen or _is_http_client(value):
            continue
        seen.add(id(value))
        attributes = getattr(value, "__dict__", None)
        if attributes is not None and not isinstance(value, type):
            yield value
            waiting.extend(attributes.values())


def _is_http_client(value: object) -> bool:
    for name in _LIBRARIES:
        library = sys.modules.get(name)
        if library is not None and isinstance(value, (library.Client, library.AsyncClient)):
            return True
    return False
