"""What the engine requests and receives: a `Probe` is one run to fork, a `Trial` is its outcome.

Units are numbered from 0 in the order of the recorded run. The engine knows nothing else about a
run; the code that runs a probe knows what a unit is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds and sample sizes of a blame. The published numbers are those of the defaults.

    Attributes:
        threshold: smallest gain R that makes a step decisive, 0 to 1.
        credible: probability at which the search for the decisive step ends.
        level: probability that any interval of a family is ever wrong.
        batch: probes requested at once; a larger batch takes fewer rounds but more forks.
        samples: curves drawn from the posterior.
        changes: number of changes of the curve expected before any fork.
        grades: how many times the recorded run is graded before anything is spent.
        least: forks from the start that are required before "no decisive step" is accepted.
        patience: live calls per unit after which a search ends without an answer.
        hopeless: failure rate from the start at which a run fails anyway.
        ceiling: a step is named only if the run fails less often than this where it is re-decided.
            At 0.5 no step is named for a coin, wherever it is tossed; at 1 the step that tossed it
            is named.
        answers: units whose response is graded; they stay live when a step is tried with all others
            held.
        auxiliary: units that a run may do without; never suspected.
        false_fail: rate at which the oracle fails a good run.
        miss: rate at which the oracle passes a bad run.
        sharing: forks for each subset of the named units, to share the blame; 0 for no shares.
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
    """One run to try. Units that are neither held nor given are live.

    Attributes:
        held: units that keep their recorded response.
        given: pairs (unit, trial): the unit answers as it did in that earlier trial, whether it was
            live, given or held there. No unit is both held and given.
        until: the last unit that is needed: the run may stop after it and has no outcome. None
            runs to the end.
        purpose: why it is run, for the journal and the ledger.
    """

    held: frozenset[int]
    given: tuple[tuple[int, int], ...] = ()
    until: int | None = None
    purpose: str = "curve"


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome and the cost of a probe.

    Attributes:
        number: identifies the trial in later probes; unique in a blame, in the order requested.
        failed: whether the outcome was bad; None if there is none or `until` was set.
        same: for each unit that was live while everything before it was as recorded, whether its
            response was the recorded one again.
        undefined: why there is no outcome, if one was expected.
        calls: number of live calls.
        tokens: tokens of the live calls.
        usd: cost of the live calls in dollars; None if a price is not known.
        seconds: duration of the run.
        grades: if the same outcome was graded again, whether it counted as failed each time.
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


class Exhausted(Exception):  # noqa: N818 - not an error: the budget is spent as intended
    """Thrown into the engine while it waits for trials: the budget is used up.

    Args:
        done: trials of the last batch that were run before.
    """

    def __init__(self, done: Sequence[Trial] = ()) -> None:
        super().__init__("the budget is used up")
        self.done = tuple(done)
