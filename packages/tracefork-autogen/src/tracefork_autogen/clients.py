"""Bind the clients of attached teams and agents, for sessions that are not ambient.

A client of AutoGen holds one of an SDK. That is bound where an attached team or agent asks, or
where the client itself is attached.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tracefork_core import UsageError
from tracefork_core.adapters import Attached, Patches, bind_until_undo

ATTACHED = Attached("autogen")
"""The attached teams, agents and clients."""


def bind_client(patches: Patches, client: Any) -> None:
    """Give an attached client of AutoGen an SDK client that is recorded with `ambient=False`."""
    if ATTACHED.covers(client):
        with suppress(UsageError):  # It has no HTTP client that a session knows.
            bind_until_undo(patches, client, "_client")
