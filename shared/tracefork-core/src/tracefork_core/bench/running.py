"""Runs a bench: every case at every size, then the audits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracefork_core.bench.audits import Audit, audits
from tracefork_core.bench.cases import CASES, SIZES, Case
from tracefork_core.bench.checks import checks
from tracefork_core.bench.driving import Engine
from tracefork_core.bench.results import Report
from tracefork_core.bench.score import score
from tracefork_core.bench.standing import standings

Tell = Callable[[str, int, int], None]
"""Told what is run now, how many runs are done, and of how many."""


def silent(words: str, done: int, of: int) -> None:
    """Tell nobody."""


def bench(
    engine: Engine,
    cases: Sequence[Case] = tuple(CASES.values()),
    sizes: tuple[int, ...] = SIZES,
    *,
    seed: int = 0,
    seeds: int = 30,
    tell: Tell = silent,
) -> Report:
    """Run an engine on cases: so many recorded runs of each at each size, by ascending seeds.

    The audits are run where all cases are.
    """
    pairs = [(case, size) for case in cases for size in case.sizes(sizes)]
    every, cells = range(seed, seed + seeds), []
    of, done = len(pairs) * seeds, 0
    for case, size in pairs:

        def told(one: int, name: str = f"{case.name} n={size}") -> None:
            nonlocal done
            tell(f"{name} seed {one}", done, of)
            done += 1

        cells.append(score(case, size, every, engine, told))
    whole = {case.name for case in cases} == set(CASES)
    found: list[Audit] = []
    if whole:
        tell("audits", of, of)
        found = audits(engine, every)
    against = standings(cells)
    return Report(seed, seeds, cells, against, list(checks(cells, against)), found)
