"""What `tracefork validate` prints: the planted faults that blame found and missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli.display import figures, screen

if TYPE_CHECKING:
    from rich.table import Table

    from tracefork_core.cli.validate.validate_result import Document, Outcome

_CONTROLS = {
    "clean": "nothing planted",
    "placebo": "only paraphrases",
    "beside": "a fault beside a paraphrase",
    "coin": "the model tosses a coin",
    "coin grade": "the oracle tosses a coin",
}


def document(report: Document, code: int, changes: Sequence[str] | None) -> dict[str, object]:
    """Return the result as JSON-able values, without times."""
    from tracefork_core.version import __version__

    compared = {} if changes is None else {"changes": list(changes)}
    return {
        "command": "validate",
        "exit": code,
        "result": "found" if report.holds else "missed a fault, or accused a wrong exchange",
        "tracefork": __version__,
        **compared,
        "report": msgspec.to_builtins(report),
    }


def print_report(
    report: Document,
    seconds: float,
    classes: Mapping[str, str],
    check: Path | None,
    changes: Sequence[str],
) -> None:
    """Print the result as text."""
    from rich.text import Text

    console = screen.stdout()
    planted = [one for one in report.outcomes if not one.control]
    controls = [one for one in report.outcomes if one.control]
    found, quiet = sum(one.holds for one in planted), sum(one.holds for one in controls)
    words = f"{found} of {len(planted)} planted faults found · {quiet} of {len(controls)} controls"
    calls = sum(one.live_calls for one in report.outcomes)
    words += f" correct · {calls:,} live calls · $0 · {figures.duration(seconds)}"
    mark = Text("✓ " if report.holds else "✗ ", screen.GOOD if report.holds else screen.BAD)
    console.print(mark.append(words, "default"), soft_wrap=True)
    table = screen.grid("", "~", ">correct", ">of", ">forks", ">calls")
    for fault in report.found:
        _add(table, classes.get(fault, fault), [one for one in planted if one.fault == fault])
    for control, title in _CONTROLS.items():
        _add(table, title, [one for one in controls if one.control == control])
    console.print(table)
    for one in report.outcomes:
        if not one.holds:
            console.print(f"✗ {_miss(one)}", style=screen.BAD, soft_wrap=True)
    if check is not None:
        head = f"{figures.several(len(changes), 'change')} since {check}" if changes else ""
        console.print(head or f"✓ same as {check}", soft_wrap=True)
        for line in changes:
            console.print(f"  {line}", soft_wrap=True, markup=False)


def _add(table: Table, title: str, outcomes: Sequence[Outcome]) -> None:
    if not outcomes:
        return
    right = sum(one.holds for one in outcomes)
    forks, calls = (sum(getattr(one, what) for one in outcomes) for what in ("forks", "live_calls"))
    mark = "✓" if right == len(outcomes) else "✗"
    table.add_row(mark, title, str(right), str(len(outcomes)), f"{forks:,}", f"{calls:,}")


def _miss(one: Outcome) -> str:
    wanted = "no exchange" if one.planted is None else f"exchange {one.planted} ({one.step})"
    named = ", ".join(map(str, one.named)) or "none"
    why = f"{one.verdict}: {one.reason}" if one.reason else one.verdict
    return f"{one.name}: {wanted} should be named; named: {named} ({why})"
