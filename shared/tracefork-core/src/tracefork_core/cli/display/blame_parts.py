"""The parts of a blamed run, coarse to fine: which task, which agent in it, which exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracefork_core.blaming.report import interval_words
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable, shortened

if TYPE_CHECKING:
    from rich.console import Console

    from tracefork_core.blaming.parts import Weighed
    from tracefork_core.blaming.report import Report

_SHOWN = 12


def print_parts(console: Console, report: Report) -> None:
    """Print each part and its effect, named parts first, then what is inside them."""
    if report.parts:
        words = "how likely each part made the run fail, and its effect in points"
        console.print(f"  {words}", style=screen.DIM)
    _print(console, report, report.parts, ())


def _print(
    console: Console, report: Report, parts: Sequence[Weighed], within: tuple[str, ...]
) -> None:
    if not parts:
        return
    kind = next((one.part.kind for one in parts if one.part.kind), "")
    heading = f"in {' ▸ '.join(within)}" if within else ""
    words = [heading, f"by {kind}" if kind else ""]
    console.print(f"  {printable(', '.join(word for word in words if word))}".rstrip())
    rows = [(_name(report, one, parts), one) for one in parts[:_SHOWN]]
    width = min(max(len(name) for name, _ in rows), max(20, console.width - 45))
    for name, one in rows:
        effect = "effect unknown" if one.effect is None else f"effect {one.effect * 100:+.0f}"
        if one.interval is not None:
            effect += f" {interval_words(one.interval)}"
        mark = "●" if one.is_named else "○"
        line = f"    {mark} {shortened(name, width):<{width}}  {one.chance:4.0%}  {effect}"
        console.print(line, style=screen.BAD if one.is_named else None, soft_wrap=True)
    if len(parts) > _SHOWN:
        console.print(f"      and {len(parts) - _SHOWN} more, each less likely", style=screen.DIM)
    for one in parts:
        inside = one.part.step or (_words(report, one),)
        if one.parts:
            _print(console, report, one.parts, inside)
        elif one.is_named and len(one.part.units) > 1:
            _print_units(console, report, one, inside)


def _print_units(console: Console, report: Report, one: Weighed, within: tuple[str, ...]) -> None:
    """Print the exchanges of a named part."""
    console.print(f"  in {printable(' ▸ '.join(within))}, by exchange")
    named = report.result.verdict.units
    units = sorted(one.part.units, key=lambda unit: -report.result.units[unit].chance)
    for unit in units[:_SHOWN]:
        found, name = report.result.units[unit], report.units[unit]
        step = " ▸ ".join(name.step[len(one.part.step) :])
        words = [step or name.caller or name.asked, *([f"→ {name.said}"] if name.said else [])]
        mark, style = ("●", screen.BAD) if unit in named else ("○", None)
        line = f"    {mark} exchange {unit}  {found.chance:4.0%}  {' '.join(words)}"
        console.print(shortened(printable(line), console.width), style=style)
    if len(units) > _SHOWN:
        more = figures.several(len(units) - _SHOWN, "more exchange")
        console.print(f"      and {more}, each less likely", style=screen.DIM)


def _name(report: Report, one: Weighed, among: Sequence[Weighed]) -> str:
    """Return the path of a part's step without the prefix that all parts share.

    Steps of equal names (a node that runs again) get their exchange numbers too.
    """
    paths = [other.part.step for other in among if other.part.kind]
    shared = 0
    while paths and all(len(path) > shared + 1 for path in paths):
        if len({path[: shared + 1] for path in paths}) > 1:
            break
        shared += 1
    step = one.part.step[shared:] if one.part.kind else one.part.step
    if step and any(other is not one and other.part.step == one.part.step for other in among):
        step = (*step[:-1], f"{step[-1]} ({_exchanges(one)})")
    return printable(" ▸ ".join(step) or _words(report, one))


def _words(report: Report, one: Weighed) -> str:
    """Return the name of a part that belongs to no step."""
    first, *others = one.part.units
    return _exchanges(one) if others else f"exchange {first} ({report.units[first].words})"


def _exchanges(one: Weighed) -> str:
    """Return the numbers of the exchanges of a part."""
    first, *others = one.part.units
    return f"exchanges {', '.join(map(str, one.part.units))}" if others else f"exchange {first}"
