"""Show a tape or one exchange in a notebook: static HTML, without scripts, every text escaped.

Notebooks call `_repr_html_` of the last value of a cell. What it returns is stored in the notebook,
so it is small, and says what it leaves out. Models and tools are not decoded: `tracefork show` and
`tracefork report` do that.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracefork_core.errors import TraceforkError
from tracefork_core.printable import printable
from tracefork_core.unpacking import decompress

if TYPE_CHECKING:
    from tracefork_core.tape.exchange import Exchange
    from tracefork_core.tape.reader import Tape

ROWS = 30
_CELL = 160
_BODY = 4_000
_LEFT = ' style="text-align:left"'


def escaped(text: str, *, lines: bool = False) -> str:
    """Return a text as HTML that shows it, with control characters spelled out."""
    return html.escape(printable(text, lines=lines))


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; each is escaped, and cut where it is long."""
    head = "".join(f"<th{_LEFT}>{escaped(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td{_LEFT}>{escaped(_cut(cell, _CELL))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def counted(total: int, noun: str) -> str:
    """Return "400 exchanges", or "first 30 of 400 exchanges" if the rest is left out."""
    words = f"{total:,} {noun}" if total == 1 else f"{total:,} {noun}s"
    return words if total <= ROWS else f"first {ROWS} of {words}"


def command(words: str) -> str:
    """Return a line with the command that shows more."""
    return f"<p>next: <code>{escaped(words)}</code></p>"


def of_tape(tape: Tape) -> str:
    """Return the first exchanges of a tape, one row each."""
    try:
        exchanges = tape.exchanges
    except TraceforkError as error:
        return _failed(error)
    receipt = tape.receipt
    outcome = "cut off" if receipt is None else f"ended with {receipt.outcome}"
    count = counted(len(exchanges), "exchange")
    rows = [_row(exchange) for exchange in exchanges[:ROWS]]
    names = ("n", "request", "status", "where", "lane", "ms")
    name = tape.path.name
    return (
        f"<p><b>{escaped(name)}</b> · {count} · {escaped(outcome)}</p>"
        f"{table(names, rows)}{command(f'tracefork report {name}')}"
    )


def _row(exchange: Exchange) -> tuple[str, ...]:
    took = exchange.aside.took
    return (
        str(exchange.n),
        f"{exchange.method} {exchange.url}",
        _status(exchange),
        " / ".join(exchange.step_path) or exchange.aside.caller or "",
        exchange.lane,
        "" if took is None else f"{took / 1e6:,.0f}",
    )


def of_exchange(exchange: Exchange) -> str:
    """Return the request and the response of one exchange."""
    said = f"{exchange.method} {exchange.url} · {_status(exchange)}"
    parts = [f"<p><b>exchange {exchange.n}</b> · {escaped(said)}</p>"]
    try:
        if exchange.has_bodies:
            parts.append(_side("request", exchange.request_body, exchange.request_headers))
            parts.append(_side("response", exchange.response_body, exchange.response_headers))
        else:
            parts.append("<p>The tape holds no bodies.</p>")
    except TraceforkError as error:
        parts.append(_failed(error))
    return "".join(parts)


def _side(name: str, body: bytes, headers: list[tuple[str, str]]) -> str:
    size, shown = _shown(body, headers)
    text = f"<pre{_LEFT}>{escaped(shown, lines=True)}</pre>" if shown else ""
    listed = f"<details><summary>headers</summary>{table(('name', 'value'), headers)}</details>"
    summary = f"<summary>{name} · {escaped(size)}</summary>"
    return f"<details open>{summary}{text}{listed}</details>"


def _status(exchange: Exchange) -> str:
    if exchange.failure is not None:
        return exchange.failure.kind
    return "no response" if exchange.status is None else str(exchange.status)


def _shown(body: bytes, headers: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the size of a body in words, and as much of its text as is shown."""
    codings = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
    plain = decompress(body, codings) if codings else body
    try:
        text = (body if plain is None else plain).decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(body):,} bytes that are no text", ""
    text = _indented(text)
    if len(text) <= _BODY:
        return f"{len(body):,} bytes", text
    return f"first {_BODY:,} of {len(text):,} characters", text[:_BODY]


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _failed(error: TraceforkError) -> str:
    return f"<p>{escaped(str(error))}</p>"
