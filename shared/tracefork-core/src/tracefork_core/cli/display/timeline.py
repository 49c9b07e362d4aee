"""The timeline of a tape: one line for each exchange.

A long tape is read while it is printed, so that the first screen appears at once: its totals come
last then.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import (
    SHORT,
    Account,
    Counting,
    dollars,
    model_name,
    take_account,
)
from tracefork_core.cli.display.columns import Cell, Column, Columns
from tracefork_core.cli.display.content import content
from tracefork_core.cli.display.imported import blamed_words, imported_document, imported_words
from tracefork_core.cli.display.text import printable
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import untaped_words
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from decimal import Decimal

    from rich.console import Console

_MEASURED = 100
"""The rows of a long tape that its columns are measured by."""
COLUMNS = (
    Column("#", right=True, always=True),
    Column("lane", share=0.16, keeps_end=True, is_in_head=True),
    Column("step", share=0.3, keeps_end=True),
    Column("model", share=0.2, is_in_head=True),
    Column("content", rest=True, always=True),
    Column("tokens", right=True),
    Column("ms", right=True, always=True),
    Column("$", right=True),
)
_CONTENT = 4
"""The place of the column `content`."""


def print_timeline(console: Console, tape: Tape, shown: str) -> None:
    """Print the head of a tape and its exchanges as a table."""
    counting, exchanges = Counting(), tape.exchanges
    is_long = len(exchanges) > SHORT
    rows = _rows(tape, counting)
    first = list(islice(rows, _MEASURED if is_long else None))
    for exchange, _ in () if is_long else counting.account.untaped_calls:
        row = first[exchange.n]
        row[_CONTENT] = Cell(f"! {row[_CONTENT].text}", screen.WARN)
    _print_head(console, tape, shown, None if is_long else counting.account)
    if not exchanges:
        return
    columns = Columns(COLUMNS, first, console.width)
    for line in columns.head():
        console.print(line, soft_wrap=True)
    for row in chain(first, rows):
        console.print(columns.line(row), soft_wrap=True, end="\n")
    account = counting.account
    if is_long:
        counts, spending = _totals(account)
        console.print(" · ".join([*counts, *spending]), soft_wrap=True)
    if account.untaped:
        untaped = untaped_words(account.untaped, "A replay runs {} again.")
        screen.note(console, f"! {printable(untaped)}", screen.WARN)
    receipt = tape.receipt
    if stop := tape.stop:
        console.print(f"the fork was {printable(stop.words)}", style=screen.WARN, soft_wrap=True)
    elif receipt and receipt.has_failed:
        console.print(f"the agent ended with {printable(receipt.outcome)}", style=screen.BAD)
    quoted = shlex.quote(shown)
    following = f"next: tracefork show {quoted} N · tracefork show {quoted} --transcript"
    console.print(following, style=screen.DIM, soft_wrap=True)


def _print_head(console: Console, tape: Tape, shown: str, account: Account | None) -> None:
    from rich.text import Text

    receipt = tape.receipt
    count = figures.several(len(tape.exchanges), "exchange")
    counts, spending = ([count], []) if account is None else _totals(account)
    facts = [
        *spending,
        figures.duration(receipt.took / 1e9) if receipt else "incomplete: cut off",
        f"digest {figures.digest(tape.digest)}",
    ]
    head = Text(printable(shown), screen.STRONG).append(f" · {' · '.join(counts)}", "default")
    console.print(head, soft_wrap=True)
    console.print(f"  {' · '.join(facts)}", soft_wrap=True)
    if imported := tape.imported:
        for words in (imported_words(imported), *map(printable, imported.missing)):
            screen.note(console, f"  {words}", screen.DIM)
        if blamed := blamed_words(imported):
            screen.note(console, f"  {blamed}", screen.WARN)


def _totals(account: Account) -> tuple[list[str], list[str]]:
    """Return what was exchanged, and what was spent, in words.

    The model is named where all calls ask the same one.
    """
    kinds = account.kinds(_kind(account))
    count = figures.several(account.exchanges, "exchange")
    lanes = [figures.several(account.lanes, "lane")] if account.lanes > 1 else []
    return [f"{count} ({kinds})" if kinds else count, *lanes], account.spending


def _kind(account: Account) -> str:
    return account.models[0] if len(account.models) == 1 else "model"


def document(tape: Tape) -> dict[str, object]:
    """Return the timeline as JSON-able values."""
    receipt, environment = tape.receipt, tape.environment
    return {
        "tape": str(tape.path),
        "complete": tape.complete,
        "digest": tape.digest,
        "outcome": receipt.outcome if receipt else None,
        "stop": tape.stop.words if tape.stop else None,
        "imported": imported_document(tape.imported),
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
        "content": content(exchange, call).text,
    }


def step_words(exchange: Exchange) -> str:
    """Return "agent ▸ model", or the line of code that asked where no step is known."""
    return printable(" ▸ ".join(exchange.step_path) or exchange.aside.caller or "—")


def _rows(tape: Tape, counting: Counting) -> Iterator[list[Cell]]:
    """Yield the row of each exchange, and count it."""
    for exchange in tape.exchanges:
        call = model_call(exchange)
        yield row(exchange, call, counting.add(exchange, call))


def row(exchange: Exchange, call: ModelCall | None, price: Decimal | None) -> list[Cell]:
    """Return the cells of an exchange, one for each of `COLUMNS`."""
    model = model_name(call) if call else ""
    return [
        Cell(str(exchange.n)),
        Cell(printable(exchange.lane)),
        Cell(_where(exchange, model)),
        Cell(model),
        content(exchange, call),
        Cell(_tokens(call)),
        Cell(exchange.aside.answered or figures.milliseconds(exchange.aside.took)),
        Cell("" if price is None else figures.money(price).removeprefix("$")),
    ]


def _where(exchange: Exchange, model: str) -> str:
    """Return the path of the step, without its model and without a name twice in a row."""
    path = [name for name, _ in groupby(exchange.step_path)]
    if len(path) > 1 and path[-1] == model:
        del path[-1]
    return printable(" ▸ ".join(path)) or step_words(exchange)


def _tokens(call: ModelCall | None) -> str:
    if call is None or call.usage is None:
        return ""
    asked, answered = call.usage.input_tokens, call.usage.output_tokens
    return f"{figures.tokens(asked)} → {figures.tokens(answered)}"
