"""What `tracefork bench` prints: whether the rules hold, each case, other rules, misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console

    from tracefork_core.bench.bench import Check, Report
    from tracefork_core.bench.score import Cell, Scored, Standing

_SHOWN = 12
_NOTE = (
    "Simulated policies are not language models; how many calls are saved depends on n. "
    "For context, published results on labelled logs (not comparable): Who&When 14 % of steps, "
    "the best from logs alone about 50 % (algorithmic) and 29 % (hand-crafted), causal replay 21 %."
)


def document(report: Report, code: int) -> dict[str, object]:
    """Return the result as JSON-able values."""
    from tracefork_core.version import __version__

    result = "rules hold" if report.holds else "rules broken"
    head = {"command": "bench", "exit": code, "result": result, "tracefork": __version__}
    return {**head, **report.document()}


def print_report(report: Report, seconds: float) -> None:
    """Print the result for people."""
    console = screen.stdout()
    _print_rule(console, report.holds, _verdict(report, seconds))
    _print_cases(console, report.cells)
    for standing in report.standings:
        _print_standing(console, standing)
    for check in report.checks:
        _print_rule(console, check.holds, f"{check.name} {_check(check)}")
    for audit in report.audits:
        _print_rule(console, audit.holds, f"{audit.name}: {audit.words}")
    _print_misses(console, report.misses)
    console.print(_NOTE, style=screen.DIM)


def _verdict(report: Report, seconds: float) -> str:
    cells = figures.several(len(report.cells), "case")
    runs = figures.several(sum(len(cell.scored) for cell in report.cells), "run")
    cost = f"{cells} · {runs} · $0 · {figures.duration(seconds)}"
    if report.holds:
        return f"every rule holds · {cost}"
    return (
        f"{figures.several(len(report.broken), 'rule')} broken: {', '.join(report.broken)} · {cost}"
    )


def _print_cases(console: Console, cells: Sequence[Cell]) -> None:
    from tracefork_core.bench.score import SHIPPED, calls_of

    table = screen.grid(
        "",
        "~case",
        ">n",
        ">right",
        ">first",
        ">false",
        ">calls",
        ">p90",
        ">cover",
        ">drop",
        ">flip",
    )
    for cell in cells:
        of = len(cell.scored)
        middle, high = calls_of(cell.scored)
        printed = sum(len(one.claim.intervals) for one in cell.scored)
        covered = printed - sum(len(one.uncovered) for one in cell.scored)
        table.add_row(
            "✓" if cell.holds else "✗",
            cell.case.name,
            str(cell.size),
            _share(cell.rights, of),
            _share(cell.finds, of),
            str(cell.accusations),
            f"{middle:,}",
            f"{high:,}",
            _share(covered, printed),
            _share(cell.found_by("largest drop", SHIPPED), of),
            _share(cell.found_by("flip rate", SHIPPED), of),
        )
    console.print(table)
    note = f"  first: correct first suspects; drop, flip: rival rules with {SHIPPED} forks per step"
    console.print(note, style=screen.DIM, soft_wrap=True)


def _print_standing(console: Console, standing: Standing) -> None:
    from tracefork_core.bench.score import SHIPPED

    columns = (
        f"~n={standing.size}",
        ">found",
        ">calls",
        ">forks for 95 %",
        ">calls",
        ">times ours",
    )
    table = screen.grid(*columns)
    found = f"{standing.found:.0%}"
    table.add_row("blame, its first suspect", found, f"{standing.suspect:,}", "", "", "")
    table.add_row("blame, its verdict", "", f"{standing.verdict:,}", "", "", "")
    for rival in standing.rivals:
        forks = calls = times = figures.UNKNOWN
        if rival.each is not None and rival.enough is not None:
            forks, calls = str(rival.each), f"{rival.enough:,}"
            times = f"{rival.enough / max(1, standing.suspect):.1f}"
        table.add_row(rival.rule, f"{rival.found:.0%}", f"{rival.calls:,}", forks, calls, times)
    console.print(table)
    note = f"  rival rules: with {SHIPPED} forks per step, then with as many as find 95 %"
    console.print(note, style=screen.DIM, soft_wrap=True)


def _print_rule(console: Console, holds: bool, words: str) -> None:
    from rich.text import Text

    mark = Text("✓ " if holds else "✗ ", screen.GOOD if holds else screen.BAD)
    console.print(mark.append(words, "default"), soft_wrap=True)


def _print_misses(console: Console, misses: Sequence[Scored]) -> None:
    if not misses:
        return
    table = screen.grid("miss", ">n", ">seed", "~verdict", "~truth", ">suspect", ">truth")
    for one in misses[:_SHOWN]:
        claim, truth = one.claim, one.instance.truth
        answer = truth.answers[0]
        suspects = sorted(truth.decisive, key=lambda unit: (unit is None, unit))
        table.add_row(
            one.instance.case,
            str(one.instance.size),
            str(one.instance.seed),
            _words(claim.kind, claim.units, claim.mediators),
            _words(answer.kind, answer.units, answer.mediators),
            _unit(claim.decisive),
            " or ".join(map(_unit, suspects)),
        )
    console.print(table)
    if len(misses) > _SHOWN:
        more = len(misses) - _SHOWN
        console.print(f"  and {more} more, see --json", style=screen.DIM, soft_wrap=True)
    first = misses[0].instance
    seed = f"--seed {first.seed} --seeds 1"
    again = f"tracefork bench --cases {first.case} --sizes {first.size} {seed}"
    console.print(f"  repeat the first: {again}", style=screen.DIM, soft_wrap=True)


def _words(kind: str, units: Collection[int], mediators: Collection[int]) -> str:
    named = ", ".join(map(str, sorted(units)))
    via = "via " + ", ".join(map(str, sorted(mediators))) if mediators else ""
    return " ".join(part for part in (kind, named, via) if part)


def _unit(unit: int | None) -> str:
    return "none" if unit is None else str(unit)


def _share(hits: int, of: int) -> str:
    return f"{hits / of:.0%}" if of else figures.UNKNOWN


def _check(check: Check) -> str:
    if check.wanted > 1:
        return f"{check.found:.1f} (wanted {check.wanted:.0f})"
    return f"{check.found:.1%} (wanted {check.wanted:.0%})"
