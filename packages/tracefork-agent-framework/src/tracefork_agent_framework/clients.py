"""Bind the clients of attached agents, for sessions that are not ambient."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from tracefork_core import bind
from tracefork_core.adapters import Patches

_BOUND = "_tracefork_bound"
_NAMES = ("client", "anthropic_client")
"""Where the chat clients of OpenAI and of Anthropic keep the client of the provider's SDK."""
_NOTHING_ELSE: Mapping[ContextVar[Any], object] = {}

_works_here: ContextVar[bool] = ContextVar("tracefork_maf_attached", default=False)
"""Whether an attached agent or workflow runs here."""

_attached: dict[int, object] = {}


def attached() -> dict[int, object]:
    """Return the attached agents, workflows and chat clients, by id: some are not hashable."""
    return _attached


def attached_around(x: object) -> Mapping[ContextVar[Any], object]:
    """Return the values of the context in which an attached agent or workflow works."""
    return {_works_here: True} if id(x) in _attached else _NOTHING_ELSE


def is_attached(client: object) -> bool:
    """Return whether a chat client, or what asks it, is attached."""
    return _works_here.get() or id(client) in _attached


def bind_client(patches: Patches, chat: Any) -> None:
    """Give a chat client a client that is recorded with `ambient=False` too, until an undo."""
    for name in _NAMES:
        client = vars(chat).get(name)
        if client is None or hasattr(client, _BOUND):
            continue
        bound: Any = bind(client)
        setattr(bound, _BOUND, True)
        patches.at_undo(partial(setattr, chat, name, client))
        setattr(chat, name, bound)
