"""The lower part of the view: the lines of each page, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.tui import keys
from tracefork_core.cli.tui.blame import blame
from tracefork_core.cli.tui.captured import captured
from tracefork_core.cli.tui.open_run import OpenRun
from tracefork_core.cli.tui.transcript import exchange_in_full, question_before, transcript
from tracefork_core.errors import TraceforkError
from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

TITLES = {
    "transcript": "conversation",
    "difference": "difference",
    "exchange": "in full",
    "blame": "blame",
    "tree": "branches",
    "help": "keys",
}
OF_EXCHANGE = frozenset({"transcript", "difference", "exchange"})
"""The pages that change with the exchange that is selected."""


def page(
    name: str, run: OpenRun, n: int, width: int, *, history: bool, folder: Path | None
) -> list[Text]:
    """Return the lines of a page.

    Raises:
        TapeError: the tape is corrupt.
    """
    if name == "help":
        return _lines(keys.lines())
    if name == "tree":
        return tree(run, width, folder)
    if name == "blame":
        return blame(run, width)
    if not run.exchanges:
        return _lines(["This tape holds no exchange."])
    if name == "difference":
        return difference(run, n, width)
    if name == "exchange":
        return exchange_in_full(run, n, width)
    return transcript(run, n, width, history=history)


def difference(run: OpenRun, n: int, width: int) -> list[Text]:
    """Return how an exchange differs from its parent's, or from the one before in its lane."""
    from tracefork_core.cli.display.diff_report import print_finding
    from tracefork_core.comparing.finding import Finding
    from tracefork_core.comparing.incidental import Incidental
    from tracefork_core.comparing.judge import Past, judge
    from tracefork_core.comparing.reading import read

    exchange = run.exchanges[n]
    tape, other, words = _other(run, exchange)
    if other is None:
        return _lines([f"{words} To compare two runs: tracefork diff TAPE OTHER"])
    first, second = read(other, Incidental(tape)), read(exchange, Incidental(run.tape))
    found = judge(first, second, Past())
    if found.kind == "exact":
        return _lines([f"{words}: nothing differs but clock and ids."])
    one = Finding(
        found.kind,
        other.n,
        n,
        found.pointer,
        exchange.lane,
        exchange.step_path,
        second.operation,
        found.sections,
    )

    def show(console: Console) -> None:
        console.print(f"{printable(words)}: [-removed-] {{+added+}}", style=screen.DIM)
        print_finding(console, one, None)

    return captured(width, show)


def _other(run: OpenRun, exchange: Exchange) -> tuple[Tape, Exchange | None, str]:
    """Return what an exchange is compared with, the tape of that, and both in words."""
    origin, parent = run.tape.origin, run.tape.parent
    if origin is not None and parent is not None and exchange.n >= origin.at:
        place = exchange.aside.place if exchange.aside.place is not None else exchange.n
        name = parent.path.name
        if place < len(parent.exchanges):
            there = f"exchange {exchange.n} against exchange {place} of {name}"
            return parent, parent.exchanges[place], there
        return parent, None, f"{name} has no exchange {place} to compare this one with."
    is_model = model_call(exchange) is not None
    for other in question_before(run.exchanges, exchange):
        if (model_call(other) is not None) == is_model:
            return run.tape, other, f"exchange {exchange.n} against exchange {other.n}"
    return run.tape, None, "No exchange before this one in its lane can be compared with it."


def tree(run: OpenRun, width: int, folder: Path | None) -> list[Text]:
    """Return the run with its branches, or all tapes of the folder; the open one is marked."""
    from tracefork_core.cli.commands.tree import drawn, tree_of, trees_in

    roots = [tree_of(run.path)] if folder is None else trees_in(folder)

    def show(console: Console) -> None:
        for root in roots:
            console.print(drawn(root, run.path.name, console.width))
        name = printable(run.path.name)
        console.print(f"open: {name} · [ and ] open the others", style=screen.DIM)

    return captured(width, show)


def problem(error: TraceforkError) -> list[Text]:
    """Return what is shown in place of a page that cannot be read."""
    return _lines([f"✗ {str(error).removeprefix('tracefork: ')}"])


def wrapped(words: str, width: int) -> list[Text]:
    """Return a text that is longer than a line."""
    return _lines([words[i : i + width] for i in range(0, len(words), width)])


def _lines(words: list[str]) -> list[Text]:
    from rich.text import Text

    return [Text(printable(line), end="") for line in words]
