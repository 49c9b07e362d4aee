"""The report of a blame: its result, all that is needed to check it, and its verdict in words."""

from __future__ import annotations

import msgspec

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.engine.result import Decisive, Interval, Rate, Result, Verdict
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


CREDIT = "credit: "
"""How the oracle is named where a good run counts as failed."""
_AND = " and "


def sentence(report: Report) -> str:
    """Return the verdict in words, with how sure it is."""
    result = report.result
    verdict = result.verdict
    match verdict.kind:
        case "single" | "joint" | "over-determined":
            return _named(report, verdict, result.decisive)
        case "preempted":
            return (
                f"{_names(report, verdict.units)} caused the failure, but to repair it alone does "
                f"not save the run: {verdict.reason}."
            )
        case "fails anyway":
            return (
                f"Nobody doomed this run: {verdict.reason} ({_percent(result.baseline)} of fresh "
                "runs). Change the task, the prompt or the model."
            )
        case "passed":
            return f"{_capital(verdict.reason)}. --credit asks which step saved it."
        case "not reproducible":
            return f"The failure does not reproduce: {verdict.reason}. Look at the oracle."
        case "inert":
            return f"Nothing can be told: {verdict.reason} (a higher temperature, another model)."
        case "diffuse":
            return f"No single step doomed this run: {verdict.reason}.{_likeliest(report)}"
        case "undecided":
            return f"Undecided: {verdict.reason}.{_likeliest(report)}"


def is_credit(report: Report) -> bool:
    """Return whether it is the good end of a run that was looked into."""
    return report.header.oracle.startswith(CREDIT)


def _named(report: Report, verdict: Verdict, decisive: Decisive | None) -> str:
    names = _names(report, verdict.units)
    did, end = ("saved", "are good") if is_credit(report) else ("doomed", "fail")
    surely = did if verdict.certain else f"most likely {did}"
    how = ""
    if verdict.kind == "joint":
        how = ", together"
    elif verdict.kind == "over-determined":
        how = ", each of them alone" if all(len(one) == 1 for one in verdict.sets) else ""
    parts = [f"{names} {surely} the run{how}"]
    if decisive is not None and decisive.kept is not None and decisive.redecided is not None:
        which = "it" if verdict.units == (decisive.unit,) else f"exchange {decisive.unit}"
        parts[0] += (
            f": with {which} kept, {_share(decisive.kept)} of runs {end}; decided again, "
            f"{_share(decisive.redecided)}; effect {decisive.effect * 100:+.0f} points "
            f"{interval_words(decisive.interval)}"
        )
    parts.append(f"From scratch, {_percent(report.result.baseline)} {end}")
    if verdict.mediators:
        parts.append(f"{_names(report, verdict.mediators)} only passed it on")
    repair = report.result.repair
    if repair is not None and repair.alone:
        parts.append(f"To repair exchange {repair.unit} alone is enough")
    return ". ".join(parts) + "."


def _likeliest(report: Report) -> str:
    decisive = report.result.decisive
    if decisive is None:
        return ""
    chance = _share(decisive.probability)
    return f" The likeliest so far is {_name(report, decisive.unit)} ({chance})."


def _name(report: Report, unit: int) -> str:
    return f"exchange {unit} ({report.units[unit].words})"


def _names(report: Report, units: tuple[int, ...]) -> str:
    names = [_name(report, unit) for unit in units]
    named = ", ".join(names[:-1]) + _AND + names[-1] if len(names) > 1 else "".join(names)
    return _capital(named)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _share(rate: float) -> str:
    return f"{rate * 100:.0f} %"


def interval_words(interval: Interval) -> str:
    """Return "[3 to 41]", in percent."""
    return f"[{interval[0] * 100:.0f} to {interval[1] * 100:.0f}]"


def _percent(rate: Rate) -> str:
    if rate.rate is None:
        return "an unknown share"
    return f"{_share(rate.rate)} {interval_words(rate.interval)}"
