"""Report a blame to the user's telemetry: its forks, what they cost, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.trials.budget import Purse
from tracefork_core.blaming.trials.trial_journal import Journal
from tracefork_core.telemetry.instruments import COST, FORKS
from tracefork_core.telemetry.work import Value, Work, begin


@dataclass(slots=True)
class Observed:
    """A blame that will be reported. The spans of its forks continue `traceparent`."""

    traceparent: str = ""
    verdict: str = "undecided"


@contextmanager
def observed(tape: Path, journal: Journal, purse: Purse) -> Iterator[Observed]:
    """Report the blame that runs inside, without the trials of an earlier, resumed one."""
    work = begin("blame")
    if work is None:
        yield Observed()
        return
    known, graded = set(journal.trials), purse.grading.total.usd or 0.0
    blame, error = Observed(work.traceparent()), None
    try:
        yield blame
    except BaseException as raised:
        error = raised
        raise
    finally:
        trials = [trial for number, trial in journal.trials.items() if number not in known]
        usd = sum(trial.usd or 0.0 for trial in trials)
        usd += (purse.grading.total.usd or 0.0) - graded
        facts: dict[str, Value] = {
            "tracefork.tape": str(tape),
            "tracefork.verdict": blame.verdict,
            "tracefork.forks": len(trials),
            "tracefork.exchanges.live": sum(trial.calls for trial in trials),
            "tracefork.cost": usd,
        }
        _measure(work, trials, usd)
        work.end(facts, error)


def _measure(work: Work, trials: list[Trial], usd: float) -> None:
    work.measure(COST, usd)
    for outcome, count in Counter(_outcome(trial) for trial in trials).items():
        work.measure(FORKS, count, outcome=outcome)


def _outcome(trial: Trial) -> str:
    if trial.failed is None:
        return "none"
    return "failed" if trial.failed else "passed"
