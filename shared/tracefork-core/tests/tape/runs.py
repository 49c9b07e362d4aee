"""Make recordings without an agent: many exchanges in little time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tracefork_core import Tape
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    RequestRecord,
    ResponseRecord,
)

Bodies = tuple[bytes, bytes]


def transcript(steps: int, salt: str = "") -> list[Bodies]:
    """Return requests that each send the whole transcript, and their answers."""
    messages: list[dict[str, str]] = []
    bodies = []
    for step in range(steps):
        question = sha256(f"{salt}{step}".encode()).hexdigest() * 6
        messages.append({"role": "user", "content": question})
        request = json.dumps({"model": "m", "messages": messages}).encode()
        answer = {"role": "assistant", "content": sha256(question.encode()).hexdigest() * 6}
        bodies.append((request, json.dumps({"choices": [{"message": answer}]}).encode()))
        messages.append(answer)
    return bodies


def write(path: Path, bodies: Sequence[Bodies], *, first: int = 0, **options: Any) -> Receipt:
    """Record bodies as the exchanges from `first` on, and close the tape."""
    writer = TapeWriter(path, describe(), **options)
    put(writer, bodies, first=first)
    return writer.close(Receipt(digest="", exchanges=0))


def put(writer: TapeWriter, bodies: Sequence[Bodies], *, first: int = 0) -> None:
    """Record bodies as exchanges of a tape that stays open."""
    for n, (asked, answered) in enumerate(bodies, first):
        url = "https://model.test/v1/chat"
        request = RequestRecord("POST", url, [], sha256(asked).hexdigest())
        aside = ExchangeAside("main", "test", n)
        writer.begin(ExchangePayload(n, request), aside, asked)
        response = ResponseRecord(200, "OK", [], sha256(answered).hexdigest())
        aside.sizes, aside.turns, aside.end = [len(answered)], [[2 * n, 2]], "eof"
        writer.end(ExchangePayload(n, request, response), aside, answered)


def read(path: Path) -> list[Bodies]:
    """Return the bodies of all exchanges of a tape."""
    with Tape.open(path) as tape:
        return [(exchange.request_body, exchange.response_body) for exchange in tape.exchanges]
