"""`tracefork bench`: test blame on simulated runs whose cause is known."""

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
        typer.Option("--cases", metavar="NAME,…", help="Run only these cases, and no audits."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, metavar="N", help="Number of runs of each case at each size."
        ),
    ] = _SEEDS,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="N,…", help="Numbers of steps of the runs.")
    ] = _SIZES,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="Random seed of the first run.")
    ] = 0,
    as_json: options.AsJson = False,
) -> int:
    """Test blame on simulated runs whose cause is known.

    The agents are small tables, run until they fail. From the tables follow the true cause and the
    risk after each step. Blame's verdicts, intervals and live calls are compared with them, and
    with those of other published methods, offline and at no cost. The exit code is 0 if every
    acceptance rule holds, else 1.
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
            raise UsageError(
                f"tracefork: there is no case {name!r}. The cases: {', '.join(CASES)}."
            )
    if not wanted:
        raise UsageError(f"tracefork: --cases needs names. The cases: {', '.join(CASES)}.")
    return [CASES[name] for name in dict.fromkeys(wanted)]


def _sizes(text: str) -> tuple[int, ...]:
    expected = "--sizes must be a list of numbers of steps (8,16,32)"
    sizes = tuple(dict.fromkeys(options.numbers(text, expected)))
    if not all(_SHORTEST <= size <= _LONGEST for size in sizes):
        raise UsageError(
            f"tracefork: --sizes must be from {_SHORTEST} to {_LONGEST} steps (got {text!r})."
        )
    return sizes
