"""Conversations with tools, for runs of any length: what is asked, and what is answered."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import accumulate

TURNS = 40
RARE = "zanzibar"
"""A word that only the last result of a tool holds."""
_SYSTEM = (
    "You are the desk of a travel agency. Look up what you need, then answer in one paragraph."
)
_WORDS = 4_000
_WEIGHTS = list(accumulate(1 / rank for rank in range(1, _WORDS + 1)))
"""A word is as frequent as its rank says, as in natural languages (Zipf's law)."""
_NAMES = ("search_flights", "search_hotels", "look_up_booking", "send_mail")
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool for {name.replace('_', ' ')}.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
    for name in _NAMES
]


def conversations(many: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the requests and the answers of as many calls of a model."""
    chance = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(_WORDS)]
    history: list[dict[str, object]] = []
    for n in range(many):
        turn = n % TURNS
        if not turn:
            question = _text(chance, words, 30)
            history = [
                {"role": "system", "content": _SYSTEM},
                {"role": "user", "content": question},
            ]
        asked = {"model": "gpt-5-mini", "messages": history, "tools": _TOOLS}
        call = {
            "id": f"call_{n:024}",
            "type": "function",
            "function": {
                "name": _NAMES[turn % len(_NAMES)],
                "arguments": json.dumps({"query": _text(chance, words, 8)}),
            },
        }
        message: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls"
        if turn == TURNS - 1:
            message, reason = {"role": "assistant", "content": _text(chance, words, 60)}, "stop"
        choice = {"index": 0, "finish_reason": reason, "message": message}
        usage = {"prompt_tokens": 200 * turn + 90, "completion_tokens": 40}
        answered = {"id": f"chatcmpl-{n:024}", "choices": [choice], "usage": usage}
        yield json.dumps(asked).encode(), json.dumps(answered).encode()
        result = _text(chance, words, 90) + (f" {RARE}" if n == many - 2 else "")
        history += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]


def _text(chance: random.Random, words: list[str], count: int) -> str:
    return " ".join(chance.choices(words, cum_weights=_WEIGHTS, k=count))
