"""The report of a blame: its result, the evidence to check it, and its verdict in words."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.engine.result import Decisive, Interval, Rate, Result, Verdict
from tracefork_core.blaming.oracles.noise import Noise
from tracefork_core.blaming.parts import Weighed
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.trial_journal import Header
from tracefork_core.blaming.trials.units import UnitName
from tracefork_core.errors import UnwritableError


class Grading(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of an oracle that calls a model, out of the same budget. `usd` is None if unknown."""

    calls: int
    tokens: int
    usd: float | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a blame, with everything needed to check it.

    Attributes:
        tape: path of the tape.
        header: what determines the result: settings, seed and versions.
        budget: the limit; what was spent is in the result's ledger.
        units: the name of each unit.
        parts: the effect of each part, named and likely ones first.
        result: the verdict and its evidence.
        draws: every fork, by its number.
        grading: cost of an oracle that calls a model; the ledger does not include it.
        noise: how often the oracle errs, if finished runs were graded again.
        prices: versions of the price lists used; None for none.
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

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict, the ranking and the controls."""
        from tracefork_core.blaming.notebook import of_report

        return of_report(self)


FILE = "report.json"
"""The name of the report in the folder of its blame."""


def save(report: Report, folder: Path) -> None:
    """Write a report into the folder of its blame, where `load` finds it.

    Raises:
        UnwritableError: it cannot be written.
    """
    try:
        (folder / FILE).write_bytes(msgspec.json.encode(report))
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {folder / FILE}: {error.strerror}."
        ) from error


def load(folder: Path) -> Report | None:
    """Return the report of the blame in a folder; None if it holds no readable one."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Report)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors.
        return None


CREDIT = "credit: "
"""Prefix of the oracle's name when a good run counts as failed."""
_AND = " and "


def sentence(report: Report) -> str:
    """Return the verdict in words, with its certainty."""
    result = report.result
    verdict = result.verdict
    match verdict.kind:
        case "single" | "joint" | "over-determined":
            return _named(report, verdict, result.decisive)
        case "preempted":
            return (
                f"{_names(report, verdict.units)} caused the failure, but repairing it alone does "
                f"not save the run: {verdict.reason}."
            )
        case "fails anyway":
            return (
                f"No step made this run fail: {verdict.reason} ({_percent(result.baseline)} of "
                "fresh runs). Change the task, the prompt or the model."
            )
        case "passed":
            return f"{_capital(verdict.reason)}. --credit asks which step saved it."
        case "not reproducible":
            return f"The failure does not reproduce: {verdict.reason}. Look at the oracle."
        case "inert":
            return (
                f"Blame cannot tell: {verdict.reason} (try a higher temperature or another model)."
            )
        case "diffuse":
            return f"No single step made this run fail: {verdict.reason}.{_likeliest(report)}"
        case "undecided":
            return f"Undecided: {verdict.reason}.{_likeliest(report)}"


def is_credit(report: Report) -> bool:
    """Return whether blame looked for the step that saved a good run."""
    return report.header.oracle.startswith(CREDIT)


def _named(report: Report, verdict: Verdict, decisive: Decisive | None) -> str:
    names = _names(report, verdict.units)
    did, run, end = "made", "the run fail", "fail"
    if is_credit(report):
        did, run, end = "saved", "the run", "are good"
    surely = did if verdict.certain else f"most likely {did}"
    how = ""
    if verdict.kind == "joint":
        how = ", together"
    elif verdict.kind == "over-determined":
        how = ", each of them alone" if all(len(one) == 1 for one in verdict.sets) else ""
    parts = [f"{names} {surely} {run}{how}"]
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
        parts.append(f"Repairing exchange {repair.unit} alone is enough")
    return ". ".join(parts) + "."


def _likeliest(report: Report) -> str:
    decisive = report.result.decisive
    if decisive is None:
        return ""
    chance = _share(decisive.probability)
    return f" Most likely so far: {_name(report, decisive.unit)} ({chance})."


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
