"""Find what the last blame of a run found."""

from __future__ import annotations

from tracefork_core.blaming.report import Report, load
from tracefork_core.blaming.trials.trial_journal import latest
from tracefork_core.tape import Tape


def last_blame(tape: Tape) -> Report | None:
    """Return the report of the last blame of this run; None if there is none."""
    report = load(latest(tape.path))
    return report if report is not None and report.header.digest == tape.digest else None
