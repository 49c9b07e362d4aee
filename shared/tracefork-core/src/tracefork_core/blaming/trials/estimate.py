"""What a blame will take, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_core.blaming.trials.units import Run

_CALLS, _POWER = 9.0, 1.2
"""Live calls to a decisive step are about 9 n^1.2: the means that were measured on planted runs of
8 to 64 units lie within 10 % of that."""
_STRUCTURE = 2.2
"""How many times as many it takes with certificate, second causes and controls."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`usd` is None where a price is not known."""

    calls: int
    usd: float | None


def estimate(run: Run) -> Estimate:
    """Return about how many live calls a blame of this run makes, and what they cost."""
    size = len(run.units)
    calls = round(_CALLS * size**_POWER * _STRUCTURE)
    known = [price for price in run.usd if price is not None]
    if len(known) < size:
        return Estimate(calls, None)
    return Estimate(calls, calls * sum(known) / size)
