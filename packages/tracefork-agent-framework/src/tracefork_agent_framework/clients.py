"""Bind the clients of attached agents, for sessions that are not ambient."""

from __future__ import annotations

from typing import Any

from tracefork_core.adapters import Attached, Patches, bind_until_undo

_NAMES = ("client", "anthropic_client")
"""Where the chat clients of OpenAI and of Anthropic keep the client of the provider's SDK."""

ATTACHED = Attached("agent_framework")
"""The attached agents, workflows and chat clients."""


def bind_client(patches: Patches, chat: Any) -> None:
    """Give a chat client that is asked a client that is recorded, if it is attached."""
    if ATTACHED.covers(chat):
        for name in vars(chat).keys() & _NAMES:
            bind_until_undo(patches, chat, name)
