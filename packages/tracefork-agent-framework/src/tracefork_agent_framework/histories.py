"""Keep a replay away from histories of conversations that outlive the run.

A history in the state of the agent's session is the program's own, and stays as it is. Every other
provider reads messages from a file or a database: a tape notes what it gave, and a replay neither
asks it nor saves to it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
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
        same=lambda provider: str(getattr(provider, "storage_path", "")) or None,
        is_exempt=lambda provider: isinstance(provider, InMemoryHistoryProvider),
    )


class History:
    """Stands in front of a provider of histories in a session."""

    def __init__(self, provider: Any, state: State) -> None:
        self._state = state
        self._saved: dict[str, list[Any]] = {}

    async def get_messages(
        self, own: Any, session_id: str | None = None, **options: Any
    ) -> list[Message]:
        """Return the messages of a session.

        What a tape has counts as long as the run saved what the recorded one did. A fork that saved
        something else gets what was there at first, and its own messages.
        """
        key = f"messages {session_id}"
        n, saved = self._state.number(key), self._saved.get(key, [])
        after = sha256(json.dumps(saved, default=str).encode()).hexdigest()
        if self._state.is_answered:
            noted = [it.answer for it in self._state.recorded(key, n)]
            same = [it["messages"] for it in noted if it["after"] == after]
            first = noted[0]["messages"] if noted else []
            messages = [Message.from_dict(it) for it in (same[-1] if same else first + saved)]
        else:
            with undisturbed():
                messages = list(await own(session_id, **options))
        found = [it.to_dict() for it in messages]
        self._state.note(key, n, {"messages": found, "after": after})
        return messages

    async def save_messages(
        self, own: Any, session_id: str | None, messages: Sequence[Message], **options: Any
    ) -> None:
        """Save messages to a session."""
        if not self._state.is_answered:
            with undisturbed():
                await own(session_id, messages, **options)
        saved = self._saved.setdefault(f"messages {session_id}", [])
        saved.extend(it.to_dict() for it in messages)
