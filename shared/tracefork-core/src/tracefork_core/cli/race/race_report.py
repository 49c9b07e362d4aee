"""What `tracefork race` prints: whether there is a race, the outcomes, the smallest reordering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tracefork_core.cli.agent.agent import Agent
    from tracefork_core.cli.race.race_result import Result
    from tracefork_core.cli.race.race_runs import Run
    from tracefork_core.run.racing import Group, Order, Smallest
    from tracefork_core.tape import Exchange

_LABEL = 10
_QUOTED = 40
_BEFORE = 20
"""Characters shown before the first difference of two long texts."""
_TOLD = {
    "same": "as recorded",
    "asks": "different request",
    "ends": "different end",
    "prints": "different output",
}


def exchange_words(exchange: Exchange) -> str:
    """Return "POST /v1/chat/completions 'What is the weather in Rome?'"."""
    from urllib.parse import urlsplit

    from tracefork_core.providers import TextPart, model_call

    words = f"{exchange.method} {urlsplit(exchange.url).path or '/'}"
    call = model_call(exchange)
    parts = call.input[-1].parts if call and call.input else ()
    if said := [part.content for part in parts if isinstance(part, TextPart)]:
        words += f" '{shortened(' '.join(said[-1].split()), _QUOTED)}'"
    return printable(words)


def order_words(order: Order) -> str:
    """Return an order in the form that `--order` accepts."""
    if isinstance(order, int):
        return str(order)
    # A single number without a comma would be read as a seed.
    return ",".join(map(str, order)) + "," * (len(order) < 2)


def print_report(agent: Agent, result: Result) -> None:
    """Print the result as text."""
    from rich.text import Text

    if result.failure is not None:
        _print_failure(agent, result, result.failure)
        return
    console = screen.stdout()
    good = result.exit == 0
    head = Text("✓ " if good else "✗ ", screen.GOOD if good else screen.BAD)
    console.print(head.append(_verdict(result), "default"), soft_wrap=True)
    found = result.found
    if found is not None and not good:
        for group in found.groups:
            _print_group(console, group)
        if found.smallest is not None:
            _print_smallest(console, result, found.smallest)
    if unanswered := sorted(result.taped.overlap.unanswered):
        which = _exchanges(unanswered, {})
        note = f"  note  the tape has no answer to {which} (cancelled), so no order can let it win"
        console.print(note, style=screen.DIM, soft_wrap=True)
    if not result.prints_compared:
        note = "  note  the output differs even between equal runs, so it was not compared"
        console.print(note, style=screen.DIM, soft_wrap=True)


def document(agent: Agent, result: Result) -> dict[str, object]:
    """Return the result as JSON-able values."""
    from tracefork_core.cli.display.card import card_document

    overlap, found, failure = result.taped.overlap, result.found, result.failure
    smallest = found.smallest if found else None
    came = failure.came if failure else None
    words = {0: "no race", 1: "race"}
    return {
        "command": "race",
        "exit": result.exit,
        "result": words[result.exit] if failure is None else "not as recorded",
        "reason": _reason(result, failure) if failure else None,
        "divergence": card_document(came.divergence, agent.words)
        if came and came.divergence
        else None,
        "tape": str(result.taped.path),
        "agent": agent.words,
        "exchanges": result.taped.exchanges,
        "overlapping": len(overlap.exchanges),
        "unanswered": sorted(overlap.unanswered),
        "runs": result.runs,
        "orders": found.orders if found else 0 if failure else 1,
        "prints_compared": result.prints_compared,
        "seconds": result.seconds,
        "outcomes": [_group_document(group) for group in found.groups] if found else [],
        "smallest": _smallest_document(result, smallest) if smallest else None,
    }


def _group_document(group: Group) -> dict[str, object]:
    outcome = group.outcome
    return {
        "kind": outcome.kind,
        "where": outcome.where,
        "recorded": outcome.recorded,
        "now": outcome.now,
        "orders": group.orders,
        "order": order_words(group.order),
    }


def _smallest_document(result: Result, smallest: Smallest) -> dict[str, object]:
    return {
        "order": order_words(smallest.order),
        "kind": smallest.outcome.kind,
        "where": smallest.outcome.where,
        "moved": [
            {"exchange": early, "before": list(late)} for early, late in smallest.moved.items()
        ],
        "command": _command(result, smallest),
    }


def _verdict(result: Result) -> str:
    name = printable(tape_names.shown(result.taped.path))
    overlap, found = result.taped.overlap, result.found
    exchanges = figures.several(result.taped.exchanges, "exchange")
    if found is None:
        what = "no answered request" if overlap.unanswered else "nothing"
        return f"{name} · {what} overlaps in {exchanges}, so there is no other order · 1 run"
    together = f"{len(overlap.exchanges)} of {exchanges} overlap"
    cost = f"{figures.several(result.runs, 'run')} · $0 · {figures.duration(result.seconds)}"
    if found.smallest is None:
        return f"{name} · no race in {figures.several(found.orders, 'order')} · {together} · {cost}"
    changed = sum(group.orders for group in found.groups if group.outcome.changed)
    share = f"{changed} of {figures.several(found.orders, 'order')}"
    return f"{name} · {share} changed the outcome · {together} · {cost}"


def _print_group(console: Console, group: Group) -> None:
    outcome = group.outcome
    told = _TOLD[outcome.kind] + (f": {outcome.where}" if outcome.where else "")
    line = f"  {told} · {figures.several(group.orders, 'order')}"
    if outcome.changed:
        line += f", as --order {order_words(group.order)}"
    console.print(printable(line), soft_wrap=True)
    if outcome.recorded or outcome.now:
        _pair(console, outcome.recorded, outcome.now)


def _pair(console: Console, recorded: str, now: str) -> None:
    from rich.text import Text

    room = max(20, console.width - _LABEL - 4)
    same = next(
        (i for i, (a, b) in enumerate(zip(recorded, now, strict=False)) if a != b),
        min(len(recorded), len(now)),
    )
    start = same - _BEFORE if max(len(recorded), len(now)) > room and same > _BEFORE else 0
    for label, text, style in (("recorded", recorded, screen.GOOD), ("now", now, screen.BAD)):
        shown = shortened(printable(("…" if start else "") + text[start:]), room)
        line = Text(f"    {label:<{_LABEL}}", screen.DIM).append(shown, style)
        console.print(line, soft_wrap=True)


def _print_smallest(console: Console, result: Result, smallest: Smallest) -> None:
    from rich.text import Text

    words = result.taped.words
    label = "  smallest  "
    for early, late in smallest.moved.items():
        line = Text(label, screen.STRONG).append(f"{_exchange(early, words)} answered", "default")
        console.print(line, soft_wrap=True)
        console.print(f"{'':<12}before {_exchanges(late, words)}", soft_wrap=True)
        label = " " * len(label)
    if not smallest.moved:
        what = "chunks of one answer arrive between those of another"
        if result.taped.overlap.waits:
            what = "a sleep or a timer ends before an answer, or after it"
        what += "; the exchanges keep their order"
        console.print(Text(label, screen.STRONG).append(what, "default"), soft_wrap=True)
    line = Text("  see       ", screen.DIM).append(_command(result, smallest), "default")
    console.print(line, soft_wrap=True)


def _exchange(number: int, words: dict[int, str]) -> str:
    told = words.get(number)
    return f"exchange {number}" + (f" ({told})" if told else "")


def _exchanges(numbers: Sequence[int], words: dict[int, str]) -> str:
    if len(numbers) == 1:
        return _exchange(numbers[0], words)
    return f"exchanges {', '.join(map(str, sorted(numbers)))}"


def _command(result: Result, smallest: Smallest) -> str:
    return f"tracefork replay --order {order_words(smallest.order)} {printable(result.again)}"


def _reason(result: Result, failure: Run) -> str:
    found = result.taped.failure(failure)
    return found[1].removeprefix("tracefork: ") if found else ""


def _print_failure(agent: Agent, result: Result, failure: Run) -> None:
    """Print why even the recorded order did not replay."""
    from rich.text import Text

    from tracefork_core.cli.display.card import print_card

    console = screen.stderr()
    name = printable(tape_names.shown(result.taped.path))
    head = Text("✗ ", screen.BAD).append(f"{name} does not replay in its recorded order", "default")
    console.print(head.append(", so no other order was tried"), soft_wrap=True)
    if failure.came is not None and failure.came.divergence is not None:
        print_card(console, failure.came.divergence, agent=agent.words)
        return
    console.print(f"  {printable(_reason(result, failure), lines=True)}", soft_wrap=True)
    for line in failure.stderr:
        console.print(f"  │ {printable(line)}", style=screen.DIM, soft_wrap=True)
