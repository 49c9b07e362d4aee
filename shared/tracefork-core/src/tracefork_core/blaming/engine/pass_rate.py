"""Whether an agent passes as often as it should: a verdict that may be looked at after each run.

The evidence is an e-value, so that looking often does not make a wrong verdict likelier.
"""

from __future__ import annotations

from math import ceil, log

from tracefork_core.blaming.engine.intervals import rate_evalue

PASS, FAIL = "pass", "fail"
_TO_FAIL = 0.95


def verdict_on(passed: int, failed: int, rate: float, confidence: float) -> str | None:
    """Return what is known of the pass rate: at least `rate`, below it, or nothing yet.

    That it is below is said with 95 % confidence at least: else one early failure would end a
    series that might still pass.
    """
    runs, bad = passed + failed, 1 - rate
    if rate_evalue(failed, runs, bad, above=False) >= 1 / (1 - confidence):
        return PASS
    if rate_evalue(failed, runs, bad, above=True) >= 1 / (1 - max(confidence, _TO_FAIL)):
        return FAIL
    return None


def missing_runs(passed: int, failed: int, rate: float, confidence: float) -> int | None:
    """Return how many runs more would do if all of them passed; None for very many."""
    for more in range(1, 10 + 10 * ceil(-log(1 - confidence) / -log(rate))):
        if verdict_on(passed + more, failed, rate, confidence) == PASS:
            return more
    return None
