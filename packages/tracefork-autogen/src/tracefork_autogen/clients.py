"""Bind the clients of attached teams and agents, for sessions that are not ambient.

A client of AutoGen holds one of an SDK. That is bound where an attached team or agent asks, or
where the client itself is attached.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

from tracefork_core import UsageError, bind
from tracefork_core.adapters import Patches

_BOUND = "_tracefork_bound"
_CLIENT = "_client"

is_attached: ContextVar[bool] = ContextVar("tracefork_autogen_attached", default=False)
"""Whether an attached team or agent works here."""

_attached: dict[int, object] = {}


def attached_objects() -> dict[int, object]:
    """Return the attached teams, agents and clients, by id: not all are hashable."""
    return _attached


def attached_with(x: object) -> bool:
    """Return whether a team or an agent is attached, or is a part of one that is."""
    return is_attached.get() or id(x) in _attached


def bind_client(patches: Patches, client: Any) -> None:
    """Give an attached client of AutoGen an SDK client that is recorded with `ambient=False`."""
    inner = getattr(client, _CLIENT, None)
    if inner is None or not attached_with(client) or hasattr(inner, _BOUND):
        return
    try:
        bound: Any = bind(inner)
    except UsageError:
        return  # It has no HTTP client that a session knows: `bind` of the user's would say so.
    setattr(bound, _BOUND, True)
    setattr(client, _CLIENT, bound)
    patches.at_undo(partial(setattr, client, _CLIENT, inner))
