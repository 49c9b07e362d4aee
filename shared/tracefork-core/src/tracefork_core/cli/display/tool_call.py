"""How a call of a tool reads: its name and arguments, and what came of it."""

from __future__ import annotations

import json

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable, readable, shortened
from tracefork_core.providers import Json, tool_use
from tracefork_core.tape import Exchange

_KEPT = 400
"""Bytes that are more than enough for one line."""


def is_tool(exchange: Exchange) -> bool:
    """Return whether an exchange is a call of a tool: of the agent's, or over an adapter's seam."""
    return exchange.aside.seam == "tool" or tool_use(exchange) is not None


def called(exchange: Exchange, width: int) -> str:
    """Return `search {"query":"cats"}`, or `github ▸ search {…}`, cut to a width."""
    if use := tool_use(exchange):
        name = f"{use.place} ▸ {use.name}" if use.place else use.name
        arguments = f" {as_json(use.arguments)}" if use.arguments else ""
        return shortened(printable(f"{name}{arguments}"), width)
    arguments = readable(exchange.request_body[:_KEPT]) if exchange.has_bodies else ""
    return shortened(f"{printable(exchange.url.removeprefix('tool:'))} {arguments}", width)


def returned(exchange: Exchange, width: int) -> str:
    """Return `→ ["cats 0"]`, cut to a width; of a tool that yields `→ 3 values`."""
    from tracefork_core.seams.tools.streams import HEAD, RETURN

    if not exchange.has_bodies:
        return "→ …"
    if use := tool_use(exchange):
        result = use.result if isinstance(use.result, str) else as_json(use.result)
        return shortened(f"{'✗' if use.is_error else '→'} {printable(result)}", width)
    body = exchange.response_body
    if exchange.response_headers[:1] == list(HEAD.headers):
        lines = body.splitlines()
        count = sum(not line.startswith(RETURN) for line in lines)
        return f"→ {figures.several(count, 'value')}"
    return shortened(f"→ {readable(body[:_KEPT])}", width)


def in_words(exchange: Exchange, body: bytes) -> bytes:
    """Return a body for people: of a tool's answer that is binary, the text that it holds."""
    use = tool_use(exchange) if b"\0" in body else None
    return use.result.encode() if use and isinstance(use.result, str) else body


def as_json(value: Json) -> str:
    """Return a value as compact JSON text, as much as one line needs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:_KEPT]
