"""What blame found: the finding, the ranking with intervals, and the whole result."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.tui.captured import captured
from tracefork_core.cli.tui.open_run import OpenRun

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tracefork_core.blaming.report import Report

_SHOWN = 12


def blame(run: OpenRun, width: int) -> list[Text]:
    """Return the finding of a run, and what its last blame found, if there was one."""
    report, first = run.marks.report, run.finding()

    def show(console: Console) -> None:
        from tracefork_core.cli.display.blame_report import print_report

        sure = f"{first.sure}: " if first.sure else ""
        console.print(printable(f"{sure}{first.line}"), style=screen.STRONG)
        if report is not None:
            for line, style in _ranking(report):
                console.print(line, style=style, soft_wrap=True)
            print_report(console, report)
            return
        console.print(printable(first.more) or "No blame was run.")
        command = f"tracefork blame {shlex.quote(run.shown)} --oracle …"
        console.print(f"next: {command}", style=screen.DIM, soft_wrap=True)

    return captured(width, show)


def _ranking(report: Report) -> Iterator[tuple[str, str]]:
    """Yield a line for each exchange, the likeliest first, and its style."""
    from tracefork_core.blaming.ranking import ranking
    from tracefork_core.blaming.report import interval_words

    ranked = ranking(report)
    yield "  how likely  effect              exchange", screen.DIM
    for one in ranked[:_SHOWN]:
        effect = "unknown" if one.effect is None else f"{one.effect * 100:+.0f} points"
        if one.low is not None and one.high is not None:
            effect += f" {interval_words((one.low, one.high))}"
        chance = "—" if one.probability is None else f"{one.probability:.0%}"
        mark = "●" if one.verdict in ("named", "likely") else "○"
        said = f", {one.verdict}" if one.verdict else ""
        words = f"{one.exchange}{said} · {one.words}"
        yield printable(f"{mark} {chance:>10}  {effect:<18}  {words}"), "default"
    if len(ranked) > _SHOWN:
        yield f"  and {len(ranked) - _SHOWN} more, each less likely", screen.DIM
