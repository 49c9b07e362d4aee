"""Measure the start: importing the package, and `--help`."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

from bench import Bench, Samples, clean_environment
from peers import FORKLINE, IN_MEMORY, VCR
from recorders import CORE
from table import Measurement, Row, Spread

TITLE = "Starting"
CASES = ("python -c pass", "import", "import, what it takes to record and replay", "--help")
_ALONE, _IMPORT, _SESSIONS, _HELP = CASES
_MOST_MS = 10
"""The largest acceptable cost of an import, in milliseconds."""

What = tuple[str, str]
"""A case and a variant."""


def measure(bench: Bench) -> Measurement:
    """Measure fresh processes, in turns."""
    commands = _commands(bench)
    rounds = bench.rounds(
        3 if bench.quick else 9,
        [" / ".join(what) for what in commands],
        lambda name: _run(commands[_what(name)]),
    )
    spreads = {
        _what(name): Spread.of([one["seconds"][0] * 1e3 for one in found])
        for name, found in rounds.items()
    }
    alone = spreads[_ALONE, "Python"].median
    return Measurement(
        TITLE,
        "CPU time of a fresh process. `+` is the difference to Python alone. Byte code is cached.",
        [_row(*what, spread, spread.median - alone) for what, spread in spreads.items()],
    )


def _row(case: str, who: str, spread: Spread, more: float) -> Row:
    compared = "" if case == _ALONE else f"{more:+,.0f} ms"
    if who != CORE or case == _HELP:
        return Row(case, who, spread, "ms", compared)
    return Row(case, who, spread, "ms", compared, f"≤ +{_MOST_MS} ms", more <= _MOST_MS)


def _what(name: str) -> What:
    case, who = name.split(" / ")
    return case, who


def _commands(bench: Bench) -> dict[What, list[str | Path]]:
    python = bench.python[CORE]
    commands: dict[What, list[str | Path]] = {
        (_ALONE, "Python"): [python, "-c", "pass"],
        (_IMPORT, CORE): [python, "-c", "import tracefork_core"],
        (_SESSIONS, CORE): [python, "-c", "from tracefork_core import record, replay"],
        (_HELP, CORE): [python.with_name("tracefork"), "--help"],
    }
    if IN_MEMORY in bench.python:
        theirs = bench.python[IN_MEMORY]
        commands |= {
            (_IMPORT, IN_MEMORY): [theirs, "-c", "import tracefork"],
            (_IMPORT, FORKLINE): [theirs, "-c", "import forkline"],
            (_IMPORT, VCR): [theirs, "-c", "import vcr"],
            (_HELP, IN_MEMORY): [theirs.with_name("tracefork"), "--help"],
            (_HELP, FORKLINE): [theirs.with_name("forkline"), "--help"],
        }
    order = {case: n for n, case in enumerate(CASES)}
    return dict(sorted(commands.items(), key=lambda one: order[one[0][0]]))


def _run(command: list[str | Path]) -> Samples:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=clean_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": [after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]}
