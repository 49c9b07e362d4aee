"""What `tracefork calibrate` prints: the verdict, then what differed between runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable, shortened

if TYPE_CHECKING:
    from rich.console import Console

    from tracefork_core.cli.agent.agent import Agent
    from tracefork_core.cli.calibrate.calibrate_result import Result
    from tracefork_core.explaining.findings import Finding

_INDENT = 4
_SHOWN = 3


def print_findings(agent: Agent, result: Result) -> None:
    """Print the verdict and what differed, sources outside the boundary first."""
    from rich.text import Text

    console = screen.stdout()
    outside = [one for one in result.findings if one.outside]
    good = result.proven
    head = Text("✓ " if good else "✗ ", screen.GOOD if good else screen.BAD)
    if good and not result.exchanges:
        head = Text("· ")
    console.print(head.append(_verdict(agent, result, outside), "default"), soft_wrap=True)
    for finding in outside:
        _print_outside(console, finding)
    _print_on_tape(console, [one for one in result.findings if not one.outside])
    for leak in result.unseen:
        line = Text("  note  ", screen.DIM).append(f"{printable(leak)}", "default")
        console.print(line.append(f" {_shows(result)}", "default"), soft_wrap=True)


def document(agent: Agent, result: Result) -> dict[str, object]:
    """Return the result as JSON-able values."""
    proven, replays = result.replays
    return {
        "command": "calibrate",
        "exit": result.exit,
        "result": "repeatable" if result.proven else "different",
        "agent": agent.words,
        "live_runs": result.live,
        "exchanges": result.exchanges,
        "replays": replays,
        "proven": proven,
        "findings": [
            {
                "exchanges": list(one.exchanges),
                "pointer": one.pointer,
                "places": one.places,
                "cause": one.cause.what,
                "site": one.cause.site,
                "outside": one.outside,
                "perhaps": one.perhaps,
                "fix": one.cause.fix,
                "first": one.before,
                "then": one.after,
            }
            for one in result.findings
        ],
        "unseen": result.unseen,
    }


def _verdict(agent: Agent, result: Result, outside: Sequence[Finding]) -> str:
    from tracefork_core.run.captured import EMPTY

    proven, replays = result.replays
    name = printable(agent.target)
    share = f"{proven} of {figures.several(replays, 'replay')} proven"
    if not result.proven:
        perhaps = sum(one.perhaps for one in outside)
        sources = figures.several(len(outside) - perhaps, "source")
        more = f", perhaps {perhaps} more" if perhaps else ""
        return f"{name} · {sources} outside the boundary{more} · {share}"
    if not result.exchanges:
        return f"{name} · {EMPTY}"
    if result.findings:
        return f"{name} is repeatable: everything that differed is on the tape · {share}"
    if result.live > 1:
        asked = figures.several(result.exchanges, "exchange")
        return f"{name} is repeatable: {result.live} live runs were equal in {asked} · {share}"
    return f"{name} is repeatable · {share}"


def _print_outside(console: Console, finding: Finding) -> None:
    from rich.text import Text

    cause, pad = finding.cause, " " * _INDENT
    title = " · ".join(part for part in (cause.what, cause.site) if part)
    line = Text("  perhaps  ", screen.DIM) if finding.perhaps else Text("  outside  ", screen.BAD)
    console.print(line.append(printable(title), "default"), soft_wrap=True)
    if finding.exchanges or finding.pointer:
        numbers = _numbers(finding.exchanges)
        noun = "exchange " if len(finding.exchanges) == 1 else "exchanges "
        place = f"{noun}{numbers} {_where(finding)}" if numbers else _where(finding)
        console.print(f"{pad}{printable(place.strip())}", soft_wrap=True)
    if finding.before or finding.after:
        room = max(20, (console.width - _INDENT - 12) // 2)
        pair = [_short(text, room) for text in (finding.before, finding.after)]
        console.print(Text(f"{pad}{pair[0]}  then  {pair[1]}", screen.DIM), soft_wrap=True)
    if cause.fix:
        console.print(f"{pad}→ {printable(cause.fix)}", soft_wrap=True)


def _shows(result: Result) -> str:
    """Return whether an unseen source may still be part of an exchange."""
    if result.proven:
        return "No exchange contains it."
    return "An exchange may contain it as part of another value; that is not known."


def _print_on_tape(console: Console, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    table = screen.grid("exchange", "~where", "on the tape", "line")
    for one in findings:
        cells = (_numbers(one.exchanges), _where(one), one.cause.what, one.cause.site or "")
        table.add_row(*map(printable, cells))
    console.print(table)


def _where(finding: Finding) -> str:
    more = finding.places - 1
    return finding.pointer + (f" and {more} more" if more else "")


def _numbers(numbers: Sequence[int]) -> str:
    """Return "0, 2-7" of ascending numbers."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    words = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    return ", ".join(words[:_SHOWN]) + (", …" if len(words) > _SHOWN else "")


def _short(text: str, room: int) -> str:
    return shortened(printable(text), room) if text else figures.UNKNOWN
