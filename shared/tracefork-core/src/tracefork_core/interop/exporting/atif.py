"""Write a run as a trajectory in the Agent Trajectory Interchange Format, version 1.8.

The format: https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md. It
has one line of turns. So each model call is a turn of the agent, what was new in its question comes
before it, and the results of its tools belong to it. Parts that the format has no place for (images
are files there) are named in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tracefork_core.providers import ModelCall, model_call
from tracefork_core.providers.call import (
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
)
from tracefork_core.providers.lenient import Json, compact
from tracefork_core.providers.prices import price_of
from tracefork_core.tape import Exchange, Tape
from tracefork_core.version import __version__

VERSION = "ATIF-v1.8"
_SOURCES = {"system": "system", "developer": "system", "user": "user"}
_CHATS = ("chat", "generate_content", "text_completion")

Document = dict[str, Any]


def document(tape: Tape, name: str) -> Document:
    """Return the trajectory of a run whose agent has this name."""
    calls = [
        (exchange, call)
        for exchange in tape.exchanges
        if (call := model_call(exchange)) is not None and call.operation in _CHATS
    ]
    turns = list(_turns(calls))
    for n, turn in enumerate(turns, start=1):
        turn["step_id"] = n
    models = {call.request_model for _, call in calls}
    agent: Document = {"name": name, "version": __version__}
    if len(models) == 1:
        agent["model_name"] = models.pop()
    return {
        "schema_version": VERSION,
        "session_id": tape.digest,
        "agent": {key: value for key, value in agent.items() if value is not None},
        "steps": turns,
        "final_metrics": _totals(turns),
        "extra": {"tracefork.digest": tape.digest},
    }


def _turns(calls: Sequence[tuple[Exchange, ModelCall]]) -> Iterator[Document]:
    """Yield the turns: what was new in each question, and the answer with its tools' results."""
    before: tuple[Message, ...] = ()
    said_system: set[str] = set()
    answers: dict[str, Document] = {}
    for exchange, call in calls:
        time = datetime.fromtimestamp(exchange.aside.started / 1e9, UTC).isoformat()
        for text in _instructions(call):
            if text not in said_system:
                said_system.add(text)
                yield {"source": "system", "message": text, "timestamp": time}
        shared = _shared(before, call.input)
        for message in call.input[shared:]:
            yield from _heard(message, answers, time)
        before = call.input
        turn, ids = _answer(exchange, call, time)
        answers |= dict.fromkeys(ids, turn)
        yield turn


def _instructions(call: ModelCall) -> list[str]:
    return [text] if (text := _text(call.system)) else []


def _shared(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages two questions have in common at their beginning."""
    pairs = zip(before, now, strict=False)
    return next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))


def _heard(message: Message, answers: dict[str, Document], time: str) -> Iterator[Document]:
    """Yield the turn of a message of the question; put results of tools where they were asked."""
    rest: list[Part] = []
    for part in message.parts:
        asked = answers.get(part.id or "") if isinstance(part, ToolCallResponsePart) else None
        if isinstance(part, ToolCallResponsePart) and asked is not None:
            result = {"source_call_id": part.id, "content": _words(part.response)}
            asked.setdefault("observation", {"results": []})["results"].append(result)
        else:
            rest.append(part)
    # What the model said comes as its own turn; what it said before the recording has none.
    if rest and message.role in _SOURCES:
        text = _text(rest)
        yield {"source": _SOURCES[message.role], "message": text, "timestamp": time}


def _answer(exchange: Exchange, call: ModelCall, time: str) -> tuple[Document, list[str]]:
    parts = [part for message in call.output[:1] for part in message.parts]
    thoughts = "".join(part.content for part in parts if isinstance(part, ReasoningPart))
    asked = [part for part in parts if isinstance(part, ToolCallPart)]
    calls = [_called(part, f"{exchange.n}-{n}") for n, part in enumerate(asked)]
    spoken = [part for part in parts if not isinstance(part, ReasoningPart | ToolCallPart)]
    problem = call.error or exchange.failure
    turn: Document = {
        "source": "agent",
        "timestamp": time,
        "model_name": call.response_model or call.request_model,
        "message": _text(spoken),
        "reasoning_content": thoughts or None,
        "tool_calls": calls or None,
        "metrics": _metrics(exchange, call),
        "extra": {
            "tracefork.exchange": exchange.n,
            **({"error": problem.message} if problem is not None else {}),
        },
    }
    written = {name: value for name, value in turn.items() if value is not None}
    return written, [each["tool_call_id"] for each in calls]


def _called(part: ToolCallPart, otherwise: str) -> Document:
    given = part.arguments if isinstance(part.arguments, dict) else {"arguments": part.arguments}
    return {"tool_call_id": part.id or otherwise, "function_name": part.name, "arguments": given}


def _metrics(exchange: Exchange, call: ModelCall) -> Document | None:
    usage, price = call.usage, price_of(exchange, call)
    known: Document = {
        "prompt_tokens": usage.input_tokens if usage else None,
        "completion_tokens": usage.output_tokens if usage else None,
        "cached_tokens": usage.cache_read_input_tokens if usage else None,
        "cost_usd": float(price) if price is not None else None,
    }
    return {name: value for name, value in known.items() if value is not None} or None


def _totals(turns: Sequence[Document]) -> Document:
    totals: Document = {"total_steps": len(turns)}
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"):
        known = [turn["metrics"][name] for turn in turns if name in turn.get("metrics", {})]
        if known:
            totals[f"total_{name}"] = sum(known)
    return totals


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(
        part.content if isinstance(part, TextPart) else f"[{part.type}]" for part in parts
    )


def _words(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)
