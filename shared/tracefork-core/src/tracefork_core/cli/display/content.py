"""What an exchange was about, in the words of one line: its answer, or its call and the result."""

from __future__ import annotations

from urllib.parse import urlsplit

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import wire_sizes
from tracefork_core.cli.display.columns import Cell
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.tool_call import as_json, called, is_tool, returned
from tracefork_core.providers import Json, ModelCall
from tracefork_core.tape import Exchange

_KEPT = 300
"""Characters that are enough for any screen."""


def content(exchange: Exchange, call: ModelCall | None) -> Cell:
    """Return what came of an exchange, an error in its colour.

    A token count or telemetry, which a replay may skip, is marked as auxiliary.
    """
    found = _content(exchange, call)
    return Cell(f"auxiliary · {found.text}", screen.DIM) if exchange.is_auxiliary else found


def _content(exchange: Exchange, call: ModelCall | None) -> Cell:
    if (problem := _problem(exchange, call)) is not None:
        words = f"{_asked(exchange)} ✗ {problem}" if call is None else f"✗ {problem}"
        return Cell(_line(words), screen.BAD)
    if call is not None:
        return Cell(_line(_answer(call)))
    if is_tool(exchange):
        return Cell(_line(f"{called(exchange, _KEPT)} {returned(exchange, _KEPT)}"))
    sent, received = wire_sizes(exchange)
    came = f"{exchange.status} · {figures.size(sent)} → {figures.size(received)}"
    return Cell(_line(f"{_asked(exchange)} {came}"))


def _problem(exchange: Exchange, call: ModelCall | None) -> str | None:
    """Return the error that an exchange ended with; None if it ended well."""
    if exchange.failure:
        return f"{exchange.failure.kind}: {exchange.failure.message}"
    if exchange.status is None:
        return "no answer"
    if call and call.error:  # Of a refused call, or in the middle of a stream.
        return f"{call.error.type}: {call.error.message or figures.UNKNOWN}"
    if exchange.status >= 400:
        return str(exchange.status)
    return str(exchange.end) if exchange.end in ("open", "cancelled") else None


def _answer(call: ModelCall) -> str:
    calls = [f"▸ {part.name} {_compact(part.arguments)}" for part in call.tool_calls]
    words = [call.text] if call.text else []
    return "  ".join([*words, *calls]) or call.operation.replace("_", " ")


def _compact(value: Json) -> str:
    return value if isinstance(value, str) else as_json(value)


def _asked(exchange: Exchange) -> str:
    if is_tool(exchange):
        return called(exchange, _KEPT)
    return f"{exchange.method} {urlsplit(exchange.url).path or '/'}"


def _line(words: str) -> str:
    return printable(" ".join(words[:_KEPT].split()))
