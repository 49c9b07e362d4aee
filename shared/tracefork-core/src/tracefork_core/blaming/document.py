"""The report of a blame: its result with everything needed to check it."""

from __future__ import annotations

import msgspec

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.engine.result import Result
from tracefork_core.blaming.oracles.noise import Noise
from tracefork_core.blaming.parts import Weighed
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.trial_journal import Header
from tracefork_core.blaming.trials.units import UnitName


class Grading(msgspec.Struct, frozen=True, kw_only=True):
    """What an oracle took that asks a model, of the same budget. `usd` is None where not known."""

    calls: int
    tokens: int
    usd: float | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a blame came to, and of what, with what measures and which chance.

    Attributes:
        tape: where the run lies.
        header: what makes the result what it is, with the seed and versions.
        budget: what it might take; what it took is in the result's ledger.
        units: each unit in words.
        parts: what each part did that was told apart first, those that are named or likely first.
        result: the verdict, and what it stands on.
        draws: every fork that was run, by its number.
        grading: what the oracle took, where it asks a model; it is not in the ledger.
        noise: how often the oracle errs, where ends were graded again.
        prices: the versions of the price lists that were reckoned with; None for none.
    """

    tape: str
    header: Header
    budget: Budget
    units: tuple[UnitName, ...]
    result: Result
    parts: tuple[Weighed, ...] = ()
    draws: tuple[Trial, ...] = ()
    grading: Grading | None = None
    noise: Noise | None = None
    prices: tuple[str | None, ...] = ()
