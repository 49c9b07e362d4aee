"""What the engine asks for, and what it is told: one forked run, and what came of it.

Units are numbered from 0 in the order of the recorded run. The engine knows nothing else of a run:
who carries a probe out knows what a unit is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Settings:
    """The measures of a blame. The defaults are those its published numbers were measured with.

    Attributes:
        threshold: the least gain R that makes a step decisive.
        credible: chance at which the search for the decisive step ends.
        level: chance that any interval of a family is ever wrong.
        batch: probes asked for at once; more take fewer rounds, and more forks.
        samples: curves drawn to know what is believed.
        changes: changes of the curve that are expected before anything is seen.
        grades: how often the run as recorded is graded before anything is spent.
        least: forks at the start without which nobody is acquitted.
        patience: live calls per unit after which a search ends without an answer.
        hopeless: a run that fails this often from the start fails anyway.
        ceiling: a step is named only if the run fails less often than this where it is re-decided.
            At 0.5 a coin names nobody, wherever it is tossed; 1 names the step that tossed it.
        answers: units whose response is what is graded: they stay live where a step is tried with
            all others held.
        auxiliary: units that a run may do without: never suspected.
        false_fail: how often the oracle fails a good run.
        miss: how often the oracle passes a bad one.
        sharing: forks for each set of suspects, to share the blame among them; 0 for no shares.
    """

    threshold: float = 0.30
    credible: float = 0.97
    level: float = 0.05
    batch: int = 4
    samples: int = 400
    changes: float = 2.0
    grades: int = 5
    least: int = 6
    patience: float = 60.0
    hopeless: float = 0.80
    ceiling: float = 0.5
    answers: frozenset[int] = frozenset()
    auxiliary: frozenset[int] = frozenset()
    false_fail: float = 0.0
    miss: float = 0.0
    sharing: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """One run to try. What is neither held nor given is live.

    Attributes:
        held: units that keep their recorded response.
        given: units that answer as they did in an earlier trial, by that trial's number: what they
            drew there, were given, or held. No unit is both held and given.
        until: the last unit that is wanted: the run may stop after it, and has no outcome. None
            runs to the end.
        purpose: what it is for, in the journal and the ledger.
    """

    held: frozenset[int]
    given: tuple[tuple[int, int], ...] = ()
    until: int | None = None
    purpose: str = "curve"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a probe.

    Attributes:
        number: by which later probes refer to it; unique in a blame, given in the order asked.
        failed: whether the outcome was bad; None where there is none, or `until` was given.
        same: for each unit that was drawn live while everything before it was as recorded, whether
            its response was the recorded one again.
        undefined: why there is no outcome, where one was wanted.
        calls: live calls.
        tokens: of the live calls.
        usd: of the live calls; None where a price is not known.
        seconds: how long it took.
        grades: where the same end was graded again, whether it counted as failed each time.
    """

    number: int
    probe: Probe
    failed: bool | None
    same: Mapping[int, bool] = field(default_factory=dict)
    undefined: str | None = None
    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    grades: tuple[bool, ...] = ()


class Exhausted(Exception):  # noqa: N818 - nothing went wrong: what may be spent was spent
    """Thrown into the engine where it waits for trials: the budget is used up.

    Args:
        done: the trials of the last batch that were made nevertheless.
    """

    def __init__(self, done: Sequence[Trial] = ()) -> None:
        super().__init__("the budget is used up")
        self.done = tuple(done)
