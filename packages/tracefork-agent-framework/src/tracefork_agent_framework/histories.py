"""Keep a replay away from histories of conversations that outlive the run.

A history in the state of the agent's session is the program's own, and stays as it is. Every other
provider reads messages from a file or a database: a tape notes what it gave, and a replay neither
asks it nor saves to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import HistoryProvider, InMemoryHistoryProvider, Message

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed


def put_in(patches: Patches) -> None:
    """Put stand-ins in front of the providers of histories."""
    put_in_front(
        patches,
        HistoryProvider,
        ("get_messages", "save_messages"),
        History,
        kind="history",
        is_exempt=lambda provider: isinstance(provider, InMemoryHistoryProvider),
    )


class History:
    """Stands in front of a provider of histories in a session."""

    def __init__(self, provider: Any, state: State) -> None:
        self._state = state
        self._saved: dict[str, list[Message]] = {}

    async def get_messages(
        self, own: Any, session_id: str | None = None, **options: Any
    ) -> list[Message]:
        """Return the messages of a session."""
        key = f"messages {session_id}"
        n = self._state.number(key)
        if self._state.is_answered:
            noted = self._state.recorded(key, n)
            messages = [Message.from_dict(it) for it in noted[-1].answer] if noted else []
            if not noted or noted[-1].n != n:
                messages += self._saved.get(key, [])  # A fork reads what it wrote.
        else:
            with undisturbed():
                messages = list(await own(session_id, **options))
        self._state.note(key, n, [it.to_dict() for it in messages])
        self._saved[key] = []
        return messages

    async def save_messages(
        self, own: Any, session_id: str | None, messages: Sequence[Message], **options: Any
    ) -> None:
        """Save messages to a session."""
        if not self._state.is_answered:
            with undisturbed():
                await own(session_id, messages, **options)
        self._saved.setdefault(f"messages {session_id}", []).extend(messages)
