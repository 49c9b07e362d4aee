"""A comparison for people: the first difference first, then the counts, then the words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import SHORT, Account, take_account
from tracefork_core.cli.display.changed_words import changed_lines
from tracefork_core.cli.display.text import printable
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from rich.console import Console

    from tracefork_core.comparing.diff import Comparison
    from tracefork_core.comparing.finding import Finding, Kind

_SHOWN = 20
"""How many differences are listed."""
_LINES = 8
"""How many lines of one part are shown where all differences are listed."""
COUNTED: dict[Kind, str] = {
    "exact": "the same",
    "input differs": "other question",
    "output differs": "same question, other answer",
    "error differs": "same question, other error",
    "operation differs": "other operation",
    "missing": "only in the first",
    "extra": "only in the second",
}


def print_diff(
    console: Console,
    found: Comparison,
    tapes: tuple[Tape, Tape],
    names: tuple[str, str],
    *,
    at: int | None,
    stat: bool,
) -> None:
    """Print a comparison: all of it, its counts, or what differs at one exchange."""
    from rich.text import Text

    first = found.first
    words = f"first difference at exchange {first.place}" if first else "no difference"
    head = Text(printable(" ↔ ".join(names)), screen.STRONG).append(f" · {words}", "default")
    console.print(head, soft_wrap=True)
    for line in counts(found):
        console.print(f"  {line}", soft_wrap=True)
    if at is None:
        _print_totals(console, tapes, names, whole=stat)
    shown = [] if stat else [one for one in found.findings if at in (None, one.first, one.second)]
    for one in shown[:_SHOWN]:
        console.print()
        print_finding(console, one, None if at is not None else _LINES)
    typed = shlex.join(names)
    if len(shown) > _SHOWN:
        left = figures.several(len(shown) - _SHOWN, "more difference")
        console.print(f"\n… {left}: tracefork diff {typed} --json", soft_wrap=True)
    if first is not None and at is None:
        number = first.first if first.first is not None else first.second
        following = [f"tracefork diff {typed} --at {number}"]
        if None not in (first.first, first.second) and first.operation == "chat":
            here, there = map(shlex.quote, names)
            following.append(
                f"tracefork show {here} {first.first} --against {there} {first.second}"
            )
        for label, command in zip(("next: ", "      "), following, strict=False):
            console.print(Text(label, screen.DIM).append(command, "default"), soft_wrap=True)


def counts(found: Comparison) -> Iterator[str]:
    """Yield in words how many exchanges are the same, and how the others differ."""
    same = found.kinds.get("exact", 0)
    notes = []
    if found.after_other:
        notes.append(f"{found.after_other} after another history")
    if found.incidental:
        notes.append(f"{found.incidental} but for clock and ids")
    noted = f" ({', '.join(notes)})" if notes else ""
    yield f"{figures.several(same, 'exchange')} the same{noted}"
    others = [
        f"{found.kinds[kind]} {words}"
        for kind, words in COUNTED.items()
        if kind != "exact" and found.kinds.get(kind)
    ]
    moved = sum(one.count for one in found.findings if one.is_moved)
    others += [f"{moved} moved"] if moved else []
    if others:
        yield " · ".join(others)


def place(one: Finding) -> str:
    """Return the number of a difference: "#8", "#8 → #10", "#8 only in the first"."""
    if one.second is None:
        return f"#{one.first}"
    if one.first is None or one.first == one.second:
        return f"#{one.second}"
    return f"#{one.first} → #{one.second}"


def title(one: Finding) -> str:
    """Return what differs, and where: "output differs · agent ▸ model"."""
    kind = "moved" if one.is_moved else one.kind
    more = f" with the next {one.count - 1}" if one.count > 1 else ""
    where = " ▸ ".join(one.step) or one.lane
    return printable(f"{kind}{more} · {one.operation} · {where}")


def totals(tape: Tape) -> dict[str, object]:
    """Return the totals of a run as JSON-able values."""
    receipt = tape.receipt
    return {
        "outcome": receipt.outcome if receipt else None,
        "seconds": receipt.took / 1e9 if receipt else None,
        **(take_account(tape).document() if len(tape.exchanges) <= SHORT else {}),
    }


def rows(tapes: tuple[Tape, Tape], *, whole: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the totals of both runs by name, as (name, first, second).

    Tokens and cost of long runs only with `whole`, because that reads every exchange.
    """
    first, second = tapes
    yield "exchanges", str(len(first.exchanges)), str(len(second.exchanges))
    if whole or all(len(tape.exchanges) <= SHORT for tape in tapes):
        one, other = take_account(first), take_account(second)
        yield "tokens", _tokens(one), _tokens(other)
        yield "cost", figures.money(one.cost), figures.money(other.cost)
    yield "time", _time(first), _time(second)
    yield "outcome", _outcome(first), _outcome(second)


def _time(tape: Tape) -> str:
    return figures.duration(tape.receipt.took / 1e9) if tape.receipt else figures.UNKNOWN


def _outcome(tape: Tape) -> str:
    return printable(tape.receipt.outcome) if tape.receipt else "cut off"


def _tokens(account: Account) -> str:
    return " → ".join(map(figures.tokens, account.tokens)) if account.tokens else figures.UNKNOWN


def _print_totals(
    console: Console, tapes: tuple[Tape, Tape], names: Sequence[str], *, whole: bool
) -> None:
    table = [row for row in rows(tapes, whole=whole) if set(row[1:]) != {figures.UNKNOWN}]
    label = max(len(row[0]) for row in table)
    width = max(len(row[1]) for row in table)
    for name, before, after in table:
        console.print(f"  {name:<{label}}  {before:<{width}}  {after}", soft_wrap=True)


def print_finding(console: Console, one: Finding, most: int | None) -> None:
    """Print what differs in one place, at most so many lines of each part."""
    from rich.text import Text

    head = Text(f"{place(one)} ", screen.STRONG).append(title(one), screen.WARN)
    if one.pointer and not one.is_moved:
        head.append(f" · {printable(one.pointer)}", screen.DIM)
    console.print(head, soft_wrap=True)
    for section in one.sections:
        console.print(f"  {printable(section.name)}", style=screen.DIM)
        for line in changed_lines(section.before, section.after, console, most):
            console.print(line, soft_wrap=True)
