"""`tracefork bench`: hold blame to runs whose truth is known, beside the rules of others."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.progress import progress, tell_runs
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracefork_core.bench.cases import Case

_SEEDS, _SIZES = 30, "8,16,32"
_SHORTEST, _LONGEST = 8, 64
HOLDS, BROKEN = 0, 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def bench(
    cases: Annotated[
        str | None,
        typer.Option("--cases", metavar="NAME,…", help="Only these cases; no audits."),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="So many runs of each case.")
    ] = _SEEDS,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="N,…", help="Runs of so many steps.")
    ] = _SIZES,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="The seed of the first run.")
    ] = 0,
    as_json: options.AsJson = False,
) -> int:
    """Hold blame to runs whose truth is known, beside the rules of others.

    Agents that are small tables are run and fail; who is to blame, and the risk after each step,
    is computed from the tables exactly. Blame is asked, offline and for nothing, and its verdicts,
    intervals and live calls are compared with that. The exit status is 0 where every acceptance
    rule holds, else 1.
    """
    from tracefork_core.bench.bench import bench as run
    from tracefork_core.bench.driver import blame_engine
    from tracefork_core.cli.display.bench_report import document, print_report

    chosen, steps, began = _cases(cases), _sizes(sizes), time.monotonic()
    with progress() as show:
        tell = partial(tell_runs, show, began)
        report = run(blame_engine, chosen, steps, seed=seed, seeds=seeds, tell=tell)
    code = HOLDS if report.holds else BROKEN
    if as_json:
        screen.say_json(document(report, code))
    else:
        print_report(report, time.monotonic() - began)
    return code


def _cases(names: str | None) -> Sequence[Case]:
    from tracefork_core.bench.cases import CASES

    if names is None:
        return tuple(CASES.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in CASES:
            raise UsageError(f"tracefork: no case {name!r}. There are: {', '.join(CASES)}.")
    if not wanted:
        raise UsageError(f"tracefork: --cases takes names. There are: {', '.join(CASES)}.")
    return [CASES[name] for name in dict.fromkeys(wanted)]


def _sizes(text: str) -> tuple[int, ...]:
    words = f"--sizes takes numbers of steps (8,16,32), not {text!r}"
    sizes = tuple(dict.fromkeys(options.numbers(text, words)))
    if not all(_SHORTEST <= size <= _LONGEST for size in sizes):
        raise UsageError(
            f"tracefork: --sizes takes from {_SHORTEST} to {_LONGEST} steps, not {text!r}."
        )
    return sizes
