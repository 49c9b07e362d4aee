"""The timeline of a tape: one line for each exchange."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import (
    dollars,
    model_name,
    take_account,
    wire_sizes,
)
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.tool_call import called, is_tool, returned
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import untaped_words
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from rich.console import Console

_LANE = 24
"""The characters of a lane that are shown."""


def print_timeline(console: Console, tape: Tape, shown: str) -> None:
    """Print the head of a tape and its exchanges as a table."""
    from rich.text import Text

    account, receipt = take_account(tape), tape.receipt
    facts = [
        figures.several(account.exchanges, "exchange"),
        figures.several(account.lanes, "lane"),
        figures.duration(receipt.took / 1e9) if receipt else "incomplete: cut off",
        account.cost_words,
        f"digest {figures.digest(tape.digest)}",
    ]
    console.print(f"{printable(shown)} · {' · '.join(facts)}", soft_wrap=True)
    if not account.exchanges:
        return
    marked = {exchange.n for exchange, _ in account.untaped_calls}
    table = screen.grid(">#", "lane", "~step", "model", ">in → out", ">ms", ">$")
    for column in table.columns[1:4]:
        column.no_wrap = False  # These may be narrower than their words; what is a number may not.
    for exchange in tape.exchanges:
        number, *words = _row(exchange, model_call(exchange), is_marked=exchange.n in marked)
        table.add_row(number, *(Text(word, no_wrap=True, overflow="ellipsis") for word in words))
    console.print(table)
    if account.untaped:
        untaped = untaped_words(account.untaped, "A replay runs {} again.")
        console.print(f"! {printable(untaped)}", style=screen.WARN, soft_wrap=True)
    if receipt and receipt.outcome != "ok":
        console.print(f"the agent ended with {printable(receipt.outcome)}")
    console.print(f"next: tracefork show {shlex.quote(shown)} N", style=screen.DIM, soft_wrap=True)


def document(tape: Tape) -> dict[str, object]:
    """Return the timeline as JSON-able values."""
    receipt, environment = tape.receipt, tape.environment
    return {
        "tape": str(tape.path),
        "complete": tape.complete,
        "digest": tape.digest,
        "outcome": receipt.outcome if receipt else None,
        "seconds": receipt.took / 1e9 if receipt else None,
        "recorded": environment.started if environment else None,
        **take_account(tape).document(),
        "timeline": [summary(tape, exchange, model_call(exchange)) for exchange in tape.exchanges],
    }


def summary(tape: Tape, exchange: Exchange, call: ModelCall | None) -> dict[str, object]:
    """Return one line of the timeline as JSON-able values."""
    usage = call.usage if call else None
    took = exchange.aside.took
    return {
        "n": exchange.n,
        "lane": exchange.lane,
        "step": list(exchange.step_path),
        "caller": exchange.aside.caller,
        "answered": exchange.aside.answered or None,
        "auxiliary": exchange.is_auxiliary,
        "method": exchange.method,
        "url": exchange.url,
        "status": exchange.status,
        "end": exchange.end,
        "failure": exchange.failure.kind if exchange.failure else None,
        "model": (call.request_model or call.response_model) if call else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "milliseconds": took / 1e6 if took is not None else None,
        "cost_usd": dollars(price_of(exchange, call)) if call else None,
    }


def step_words(exchange: Exchange) -> str:
    """Return "agent ▸ model", or the line of code that asked where no step is known."""
    return printable(" ▸ ".join(exchange.step_path) or exchange.aside.caller or "—")


def _row(exchange: Exchange, call: ModelCall | None, *, is_marked: bool) -> list[str]:
    return [
        str(exchange.n),
        printable(_ends(exchange.lane)),
        step_words(exchange),
        _asked(exchange, call),
        _in_and_out(exchange, call) + (" !" if is_marked else ""),
        exchange.aside.answered or figures.milliseconds(exchange.aside.took),
        figures.money(price_of(exchange, call)).removeprefix("$") if call else "",
    ]


def _asked(exchange: Exchange, call: ModelCall | None) -> str:
    words = model_name(call) if call else _place(exchange)
    return f"{words} · auxiliary" if exchange.is_auxiliary else words


def _ends(lane: str) -> str:
    """Return where a lane begins and ends: tasks of tasks of tasks leave no room for the rest."""
    return lane if len(lane) <= _LANE else f"{lane[: _LANE // 2 - 1]}…{lane[-_LANE // 2 :]}"


def _place(exchange: Exchange) -> str:
    if is_tool(exchange):
        return called(exchange)
    parts = urlsplit(exchange.url)
    return printable(f"{exchange.method} {parts.path or '/'}")


def _in_and_out(exchange: Exchange, call: ModelCall | None) -> str:
    if exchange.failure:
        return printable(f"✗ {exchange.failure.kind}")
    if exchange.status is None:
        return "✗ no answer"
    if exchange.status >= 400:
        return f"✗ {exchange.status}"
    if call and call.error:
        return printable(f"✗ {call.error.type}")  # It came in the middle of a stream.
    if exchange.end in ("open", "cancelled"):
        return f"✗ {exchange.end}"
    if call and call.usage:
        asked, answered = call.usage.input_tokens, call.usage.output_tokens
        return f"{figures.tokens(asked)} → {figures.tokens(answered)}"
    if call:
        return figures.UNKNOWN
    if is_tool(exchange):
        return returned(exchange)
    sizes = wire_sizes(exchange)
    return f"{figures.size(sizes[0])} → {figures.size(sizes[1])}"
