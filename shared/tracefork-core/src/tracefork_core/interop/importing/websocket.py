"""Make calls of the messages of a websocket, as the seam of websockets records them.

The handshake is a call, and so is each message that the agent sent. What the server sent after it
is the answer, one chunk for each message. `read_realtime` reads the cassettes of realtime sessions
that pydantic-ai keeps: each message as JSON values, and no address.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from tracefork_core.exchange.contract import SEND
from tracefork_core.interop.importing.foreign_run import ForeignRun, lowest
from tracefork_core.interop.importing.http_recording import Answer, Body, Call, Kept, run_of
from tracefork_core.seams.websockets.messages import Message, encoded

REALTIME = "cassette of a websocket"
_NOWHERE = "wss://unknown.invalid/"


class Sent(NamedTuple):
    """A message of a websocket. `time` is in nanoseconds since the epoch, 0 if it is unknown."""

    message: Message
    by_agent: bool
    time: int = 0


def with_messages(handshake: Call, messages: Iterable[Sent], kept: Kept = "whole") -> list[Call]:
    """Return the calls of a websocket; the handshake is changed and is the first of them."""
    calls = [handshake]
    for each in messages:
        if each.by_agent:
            calls.append(_call(handshake, each, kept))
            continue
        last = calls[-1]
        if last.answer is not None:
            last.answer.chunks.append(encoded(each.message))
            if each.time and last.started:
                last.took = max(each.time - last.started, 0)
    return calls


def _call(handshake: Call, sent: Sent, kept: Kept) -> Call:
    kind = "application/json" if sent.message.kind == "text" else "application/octet-stream"
    return Call(
        SEND,
        handshake.url,
        (("content-type", kind),),
        Body(sent.message.data, kept),
        answer_of(kept),
        started=sent.time,
    )


def answer_of(kept: Kept) -> Answer:
    """Return the answer to a message, before the server's messages are added to it."""
    return Answer(200, "OK", (("content-type", "text/event-stream"),), Body(kept=kept))


def is_realtime(document: Any) -> bool:
    """Return whether a document is a cassette of a websocket, or begins like one."""
    held = document.get("interactions") if isinstance(document, dict) else None
    return isinstance(held, list) and any(map(_is_message, held))


def read_realtime(document: Any) -> ForeignRun:
    """Return the run on a cassette of a websocket. It has no address, so it does not replay."""
    handshake = Call("GET", _NOWHERE, (), Body(), Answer(101, "", (), Body(kept="values")))
    messages = [
        Sent(Message(_written(each.get("data"))), each.get("direction") == "sent")
        for each in document["interactions"]
        if _is_message(each)
    ]
    run = run_of(REALTIME, with_messages(handshake, messages, "values"))
    run.missing.insert(0, "The address of the websocket is missing")
    for exchange in run.exchanges:
        exchange.grade = lowest([exchange.grade, "content"])
    return run


def _is_message(interaction: object) -> bool:
    return isinstance(interaction, dict) and interaction.get("kind") == "message"


def _written(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str).encode(
        "utf-8", "surrogatepass"
    )
