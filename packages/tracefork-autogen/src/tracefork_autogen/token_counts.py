"""Answer how many tokens messages have from the tape: a replay needs no vocabulary.

Clients count with tiktoken, which downloads its vocabulary once on each machine. A machine that
replays may have no network and no vocabulary. So a recording notes each count, and a replay or fork
gets the noted one for the same messages. A fork counts other messages itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Tool

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of the counts of each client."""
    names = ["count_tokens", "remaining_tokens"]
    put_in_front(patches, ChatCompletionClient, names, _Counts, kind="token counts", same=type)


class _Counts:
    """Stands in for the counts of the clients of one class; `live` is their own method."""

    def __init__(self, _: Any, state: State) -> None:
        self._state = state

    def count_tokens(self, live: Any, messages: Sequence[Any], **options: Any) -> int:
        return self._count("count", live, messages, options)

    def remaining_tokens(self, live: Any, messages: Sequence[Any], **options: Any) -> int:
        return self._count("remaining", live, messages, options)

    def _count(self, what: str, live: Any, messages: Sequence[Any], options: Any) -> int:
        key = f"{what} {_digest(live, messages, options.get('tools', ()))}"
        noted = self._state.recorded(key, 0)
        if self._state.is_answered and noted:
            count = int(noted[0].answer)
        else:
            with undisturbed():
                count = live(messages, **options)
        if self._state.number(key) == 0:
            self._state.note(key, 0, count)
        return count


def _digest(live: Any, messages: Sequence[Any], tools: Sequence[Any]) -> str:
    """Return what a count depends on, in short."""
    (client,) = live.args
    told = [
        getattr(client, "_create_args", {}).get("model"),
        [message.model_dump(mode="json") for message in messages],
        [tool.schema if isinstance(tool, Tool) else tool for tool in tools],
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
