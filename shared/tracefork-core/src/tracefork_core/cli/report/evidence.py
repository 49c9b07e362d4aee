"""What the last blame of a run found, and the first lines of a page, which say it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from tracefork_core.blaming.ranking import ranking
from tracefork_core.blaming.report import Report, sentence
from tracefork_core.cli.display import figures
from tracefork_core.cli.report.document import Blame, CurvePoint, Finding, Index
from tracefork_core.tape import Receipt, Tape
from tracefork_core.tape.imported import UNKNOWN, Imported

PROVEN, LIKELY, OPEN = "proven", "likely", "not enough evidence"


def blame_of(report: Report, shown: str, *, content: bool, only: int | None = None) -> Blame | None:
    """Return what a blame found, as the page shows it; without content, no words of the run.

    With `only`, the page holds one exchange: None if the blame does not rank it.
    """
    ranked = ranking(report)
    if not content:
        ranked = [msgspec.structs.replace(one, words="") for one in ranked]
    if only is not None:
        ranked = [one for one in ranked if one.exchange == only]
        if not ranked:
            return None
    result, ledger = report.result, report.result.ledger
    cost = "" if ledger.usd is None else f" · {figures.money(Decimal(str(ledger.usd)))}"
    forks, calls = (
        figures.several(ledger.forks, "fork"),
        figures.several(ledger.live_calls, "live call"),
    )
    return Blame(
        sentence(report) if content else "",
        result.verdict.kind,
        ranked,
        [
            CurvePoint(point.position, point.rate, *point.interval, point.forks)
            for point in result.curve
            if point.rate is not None
        ],
        [
            f"{control.name}: {'passed' if control.passed else 'FAILED'}, {control.says}"
            for control in result.controls
        ],
        f"{forks} · {calls}{cost}",
        f"tracefork blame {shlex.quote(shown)} --resume",
    )


def of_exchange(n: int, index: Index, shown: str) -> Finding:
    """Return the first lines of a page that holds one exchange."""
    error = index.errors.get(str(n))
    return Finding(
        f"exchange {n}: {index.label[0]}",
        f"It ended with an error: {error}." if error else "",
        "",
        [n],
        f"tracefork report {shlex.quote(shown)}",
    )


def finding(
    tape: Tape, report: Report | None, marked: Mapping[str, str], shown: str, *, content: bool
) -> Finding:
    """Return the first lines of a page: which step made the run fail and how sure, or why not.

    `marked` are the errors of exchanges, by their numbers.
    """
    quoted = shlex.quote(shown)
    receipt = tape.receipt
    failed = receipt is None or receipt.has_failed
    end = "cut off" if receipt is None else receipt.outcome
    errors = [int(n) for n in marked]
    if report is not None:
        verdict = report.result.verdict
        named = list(verdict.units)
        sure = OPEN if not named else PROVEN if verdict.certain else LIKELY
        names = [f": {report.units[unit].words}" if content else "" for unit in named]
        line = " and ".join(
            f"exchange {unit}{name}" for unit, name in zip(named, names, strict=True)
        )
        following = f"tracefork show {quoted} {named[0]}" if named else f"tracefork show {quoted}"
        more = sentence(report) if content else f"blame: {verdict.kind}"
        return Finding(line or "No step is named.", more, sure, named, following)
    blame = f"tracefork blame {quoted} --oracle …"
    if (imported := tape.imported) is not None and report is None:
        return _of_imported(imported, receipt, quoted, content=content)
    if failed:
        line = f"The run failed: {end}." if receipt else "The recording was cut off."
        more = "No blame was run, so no step is named."
        last = errors[-1:]
        if last:
            more += f" The last error is in exchange {last[0]}: {marked[str(last[0])]}."
        return Finding(line, more, OPEN, last, blame)
    more = f"{figures.several(len(errors), 'exchange')} ended with an error." if errors else ""
    line = "The run ended well."
    return Finding(line, more, "", errors[:1], f"tracefork replay {quoted}")


def _of_imported(
    imported: Imported, receipt: Receipt | None, quoted: str, *, content: bool
) -> Finding:
    """Return the first lines of an imported run, which say no more than its file does."""
    following = f"tracefork {'replay' if imported.replays else 'show'} {quoted}"
    source = f"This was imported from a {imported.format}."
    if (blamed := imported.blamed) is not None:
        agent = f" ({blamed.agent})" if blamed.agent and content else ""
        reason = f" {blamed.reason}" if blamed.reason and content else ""
        line = f"People blamed exchange {blamed.exchange}{agent}."
        return Finding(line, f"{source}{reason}", OPEN, [blamed.exchange], following)
    if receipt is not None and receipt.has_failed:
        return Finding(f"The run failed: {receipt.outcome}.", source, OPEN, [], following)
    ended = receipt is not None and receipt.outcome != UNKNOWN
    line = "The run ended well." if ended else "How the run ended is not known."
    return Finding(line, source, "", [], following)
