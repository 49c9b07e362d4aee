"""What a blame is asked to tell apart, and how sure it has to be."""

from __future__ import annotations

from dataclasses import dataclass


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
