"""Show the report of a blame in a notebook: its verdict, its ranking and its controls."""

from __future__ import annotations

import shlex
from pathlib import Path

from tracefork_core.blaming.ranking import Ranked, ranking
from tracefork_core.blaming.report import Report, interval_words, sentence
from tracefork_core.tape.notebook import ROWS, command, counted, escaped, table

_NAMES = ("exchange", "verdict", "what", "effect", "probability", "draws")


def of_report(report: Report) -> str:
    """Return a report as static HTML, every text escaped."""
    ranked = ranking(report)
    failed = [control for control in report.result.controls if not control.passed]
    controls = (
        f"controls that failed: {', '.join(control.name for control in failed)}"
        if failed
        else f"all {len(report.result.controls)} controls passed"
    )
    name = shlex.quote(Path(report.tape).name)
    return (
        f"<p><b>blame: {escaped(report.result.verdict.kind)}</b> · {escaped(sentence(report))}</p>"
        f"<p>{counted(len(ranked), 'exchange')} · {escaped(controls)}</p>"
        f"{table(_NAMES, map(_row, ranked[:ROWS]))}{command(f'tracefork report {name}')}"
    )


def _row(one: Ranked) -> tuple[str, ...]:
    effect = "" if one.effect is None else f"{one.effect * 100:+.0f} %"
    if one.low is not None and one.high is not None:
        effect += f" {interval_words((one.low, one.high))}"
    probability = "" if one.probability is None else f"{one.probability:.0%}"
    return str(one.exchange), one.verdict, one.words, effect, probability, str(one.draws)
