"""Write runs onto tapes without running them: questions to a model, calls of tools, any number."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    RequestRecord,
    ResponseRecord,
)

CHAT = "https://api.openai.com/v1/chat/completions"
_JSON = [("content-type", "application/json")]


class Item(NamedTuple):
    """One exchange: who asked, where, what, and what was answered."""

    lane: str
    url: str
    asked: Any
    answered: Any
    status: int = 200


def write(path: Path, items: Sequence[Item], *, outcome: str = "ok") -> Path:
    """Write a tape with these exchanges, in the order asked."""
    path.unlink(missing_ok=True)
    writer = TapeWriter(path, describe())
    for n, item in enumerate(items):
        asked, answered = (json.dumps(body).encode() for body in (item.asked, item.answered))
        payload = ExchangePayload(
            n,
            RequestRecord("POST", item.url, _JSON, sha256(asked)),
            ResponseRecord(item.status, "", list(_JSON), sha256(answered)),
        )
        aside = ExchangeAside(
            lane=item.lane, seam="httpx", started=time.time_ns(), sizes=[len(answered)], end="eof"
        )
        writer.begin(payload, aside, asked)
        writer.end(payload, aside, answered)
    writer.close(Receipt(digest="", exchanges=len(items), outcome=outcome))
    return path


def chat(lane: str, messages: Iterable[Any], message: Any, **settings: Any) -> Item:
    """Return a question to a model; its answer has an id and a time of its own, as each has."""
    asked = {"model": "gpt-5-mini", "messages": list(messages), **settings}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answered = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": "gpt-5-mini",
        "choices": [choice],
    }
    return Item(lane, CHAT, asked, answered)


Turn = str | tuple[str, dict[str, Any], str]
"""What a model does: it says something, or calls a tool, with its arguments and its result."""


def conversation(
    turns: Sequence[Turn], *, lane: str = "main", system: str = "Be brief.", **settings: Any
) -> list[Item]:
    """Return the run of an agent: each question repeats all that was said before."""
    said: list[Any] = [
        {"role": "system", "content": system},
        {"role": "user", "content": "Book me a flight."},
    ]
    items = []
    for turn in turns:
        if isinstance(turn, str):
            message: Any = {"role": "assistant", "content": turn}
            items.append(chat(lane, said, message, **settings))
            said += [message, {"role": "user", "content": "Go on."}]
            continue
        name, arguments, result = turn
        call_id = f"call_{uuid.uuid4().hex}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        items.append(chat(lane, said, message, **settings))
        items.append(Item(lane, f"https://tools.test/{name}", arguments, {"result": result}))
        said += [message, {"role": "tool", "tool_call_id": call_id, "content": result}]
    return items


def singles(count: int, *, lanes: int = 4) -> list[Item]:
    """Return independent questions, spread over lanes."""
    return [
        chat(
            f"main/{i % lanes}",
            [{"role": "user", "content": f"What is {i} squared?"}],
            {"role": "assistant", "content": f"It is {i * i}."},
            temperature=0,
        )
        for i in range(count)
    ]
