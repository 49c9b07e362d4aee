"""The result of a blame, for people and as a document."""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracefork_core.blaming.report import interval_words, is_credit, sentence
from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.blame_parts import print_parts
from tracefork_core.cli.display.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from tracefork_core.blaming.engine.result import Point
    from tracefork_core.blaming.report import Report

_WIDTH = 20


def print_report(console: Console, report: Report, writes: str = "") -> None:
    """Print the verdict, the curve, the controls and the cost.

    `writes` are the options of the blame that say which side effects its forks may repeat.
    """
    from rich.table import Table
    from rich.text import Text

    result = report.result
    named = result.verdict.units
    head = Table.grid(padding=(0, 1, 0, 0))
    mark = Text("●", screen.BAD) if named else Text("○", screen.WARN)
    head.add_row(mark, Text(printable(sentence(report))))
    console.print(head)
    print_parts(console, report)
    _print_curve(console, report)
    if result.shares:
        parts = [f"exchange {one.unit} {one.share:.0%}" for one in result.shares]
        console.print(f"  shares of the blame: {', '.join(parts)}")
    failed = [control for control in result.controls if not control.passed]
    for control in failed:
        line = f"! {control.name}: {control.says}"
        console.print(printable(line), style=screen.WARN, soft_wrap=True)
    passed = [control.name for control in result.controls if control.passed]
    if passed:
        console.print(f"  controls passed: {', '.join(passed)}", style=screen.DIM)
    if result.undefined.forks:
        reasons = "; ".join(f"{reason} ({n})" for reason, n in result.undefined.reasons.items())
        line = (
            f"! {result.undefined.forks} of {result.undefined.of} forks have no outcome: {reasons}"
        )
        console.print(printable(line), style=screen.WARN, soft_wrap=True)
    level = f"{1 - report.header.settings.level:.0%}"
    console.print(
        f"  intervals: {level} for all steps together, valid whenever you stop", style=screen.DIM
    )
    for line in _oracle(report):
        console.print(f"  {line}", style=screen.DIM)
    console.print(f"  {_took(report)}", style=screen.DIM)
    if named:
        unit, tape = named[0], shlex.quote(tape_names.shown(Path(report.tape)))
        forking = f"tracefork fork {tape} --at {unit}{writes}"
        for command in (f"tracefork show {tape} {unit}", forking):
            console.print(f"  next: {command}", style=screen.DIM, soft_wrap=True)
    elif result.verdict.kind == "undecided" and "budget" in result.verdict.reason:
        words = "to go on: the same command with --resume and a larger --budget"
        console.print(f"  {words}", style=screen.DIM)


def document(report: Report, code: int) -> dict[str, object]:
    """Return the report as JSON-able values; except `seconds`, equal for equal draws."""
    result: dict[str, object] = _builtins(report.result)
    header = report.header
    return {
        "command": "blame",
        "exit": code,
        "sentence": sentence(report),
        **result,
        "parts": _builtins(report.parts),
        "names": _builtins(report.units),
        "draws": _builtins(report.draws),
        "grading": _builtins(report.grading),
        "noise": _builtins(report.noise),
        "tape": report.tape,
        "digest": header.digest,
        "seed": header.seed,
        "settings": _builtins(header.settings),
        "agent": header.agent,
        "oracle": header.oracle,
        "budget": _builtins(report.budget),
        "versions": {"tracefork-core": header.version, "genai-prices": _lists(report)},
    }


def _builtins(value: object) -> Any:
    """Return JSON-able values with sets sorted, so that a resumed blame gives the same document."""
    return msgspec.to_builtins(value, order="deterministic")


def _lists(report: Report) -> str | None:
    """Return the versions of the price lists used; None if there are none."""
    return ", ".join(version for version in report.prices if version) or None


def _print_curve(console: Console, report: Report) -> None:
    """Print how often the run fails, by how many exchanges are kept."""
    tried = [point for point in report.result.curve if point.forks]
    if not tried:
        return
    console.print(f"  kept   {'good' if is_credit(report) else 'fails'}", style=screen.DIM)
    for point in tried:
        console.print(f"  {point.position:>4}   {_bar(point)}  {_words(report, point)}")


def _bar(point: Point) -> str:
    """Return a bar for a rate: █ up to the rate, ▓ and ▒ for its interval."""
    low, high = (round(end * _WIDTH) for end in point.interval)
    rate = round((point.rate or 0.0) * _WIDTH)
    cells = ["█" if n < rate else "▒" if n < high else "·" for n in range(_WIDTH)]
    cells[low:rate] = ["▓"] * max(0, rate - low)
    return "".join(cells)


def _words(report: Report, point: Point) -> str:
    figure = f"{(point.rate or 0.0) * 100:3.0f} % {interval_words(point.interval)}"
    forks = figures.several(point.forks, "fork")
    last = point.position - 1
    decisive = report.result.decisive
    if decisive is not None and decisive.unit == last:
        forks += f" ◀ keeps exchange {last}"
    return f"{figure:<19} {forks}"


def _oracle(report: Report) -> Iterator[str]:
    """Yield how often the oracle errs and what it cost, where known."""
    noise, grading, decisive = report.noise, report.grading, report.result.decisive
    if noise is not None:
        rates = (
            "unknown" if rate is None else f"{rate:.0%}" for rate in (noise.false_fail, noise.miss)
        )
        line = "oracle noise: fails {} of good runs, passes {} of bad ones".format(*rates)
        yield f"{line}; effect without the noise {decisive.corrected:+.0%}" if decisive else line
    if grading is not None:
        cost = None if grading.usd is None else Decimal(str(grading.usd))
        calls = figures.several(grading.calls, "call")
        priced = "" if cost is None else f" · {figures.money(cost)}"
        yield f"judge, in addition: {calls}{priced}"


def _took(report: Report) -> str:
    ledger = report.result.ledger
    cost = None if ledger.usd is None else Decimal(str(ledger.usd))
    return " · ".join(
        [
            figures.several(ledger.forks, "fork"),
            figures.several(ledger.live_calls, "live call"),
            f"{figures.tokens(ledger.tokens)} tokens",
            *([] if cost is None else [figures.money(cost)]),
            f"{figures.duration(ledger.seconds)} of work",
        ]
    )
