"""The data of a whole page: a run with its family, one exchange, or two runs side by side."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

import msgspec

from tracefork_core.blaming.report import Report as BlameReport
from tracefork_core.cli.display import figures
from tracefork_core.cli.report import branch_strip
from tracefork_core.cli.report.document import Finding, Report, Run
from tracefork_core.cli.report.family import Shown
from tracefork_core.cli.report.packing import Parts
from tracefork_core.cli.report.run_data import run_of
from tracefork_core.comparing.diff import Comparison
from tracefork_core.tape import Tape


def of_family(
    shown: Shown, parts: Parts, *, content: bool = True, blame: BlameReport | None = None
) -> Report:
    """Return a page with all tapes of a family.

    Args:
        shown: the tapes.
        parts: where the packed parts of the page go.
        content: whether the texts of the runs are in the page.
        blame: what a blame of the first tape found, to open the page at it; by default, the page
            shows the last blame of each tape.

    Raises:
        TapeError: the first tape cannot be read.
    """
    runs: list[Run] = []
    for path in shown.paths:
        with Tape.open(path) as tape:
            place = shown.place_of_parent(path)
            of_this = None if runs else blame
            runs.append(run_of(tape, parts, content=content, parent=place, blame=of_this))
    at = "panel=blame" if blame is not None else ""
    return Report(title=runs[0].name, content=content, runs=runs, place=at)


def of_exchange(tape: Tape, n: int, parts: Parts) -> Report:
    """Return a page with one exchange."""
    run = run_of(tape, parts, content=True, only=n)
    return Report(title=f"{run.name} {n}", content=True, runs=[run])


def of_two(first: Tape, second: Tape, found: Comparison, parts: Parts) -> Report:
    """Return a page with two runs, opened at the first difference."""
    forked = [_forked(first, second), _forked(second, first)]
    runs = [
        run_of(first, parts, content=True, parent=1 if forked[0] and not forked[1] else None),
        run_of(second, parts, content=True, parent=0 if forked[1] else None),
    ]
    runs[1] = msgspec.structs.replace(
        runs[1],
        branch=branch_strip.compared(second, runs[0].name, found, is_branch=forked[1]),
        finding=_difference(runs[0], runs[1], found),
    )
    title = f"{runs[0].name} and {runs[1].name}"
    return Report(title=title, content=True, runs=runs, place=_place(found))


def _forked(branch: Tape, parent: Tape) -> bool:
    """Return whether a tape is a branch of another."""
    return branch.needs[:1] == [parent.path.name] and branch.path.parent == parent.path.parent


def _difference(first: Run, second: Run, found: Comparison) -> Finding:
    command = f"tracefork diff {shlex.quote(first.name)} {shlex.quote(second.name)}"
    difference = found.first
    if difference is None:
        return Finding(f"Nothing differs from {first.name}.", "", "", [], command)
    count = figures.several(len(found.findings), "difference")
    where = f" at {difference.pointer}" if difference.pointer else ""
    return Finding(
        f"{count} from {first.name}",
        f"The first is exchange {difference.place}: {difference.kind}{where}.",
        "",
        [] if difference.second is None else [difference.second],
        f"{command} --at {difference.place}",
    )


def _place(found: Comparison) -> str:
    """Return the address of the first difference."""
    difference = found.first
    run, step = 1, 0
    compared: dict[str, object] = {}
    if difference is not None and difference.second is None:
        run, step = 0, difference.place
    elif difference is not None:
        step = difference.second or 0
        if difference.first is not None:
            compared = {"part": "diff", "with": difference.first, "of": 0}
    return urlencode({"run": run, "step": step, "view": "branches", **compared})
