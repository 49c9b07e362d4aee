"""How long starting takes: importing the package, and the help of the command line."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from bench import Bench, Samples, clean_environment
from peers import IN_MEMORY
from recorders import CORE
from table import Measurement, Row, Spread

_ALONE = "python -c pass"


def measure(bench: Bench) -> Measurement:
    """Measure fresh processes, in turn."""
    commands = _commands(bench)
    rounds = bench.rounds(3 if bench.quick else 9, commands, lambda what: _run(commands[what]))
    spreads = {
        what: Spread.of([one["seconds"][0] * 1e3 for one in rounds[what]]) for what in commands
    }
    rows = [
        Row(
            "a fresh process",
            what,
            spread,
            "ms",
            "" if what == _ALONE else f"{spread.median - spreads[_ALONE].median:+,.0f} ms",
        )
        for what, spread in spreads.items()
    ]
    return Measurement(
        "Starting", "Wall time of a process; +: more than Python alone. Byte code is cached.", rows
    )


def _commands(bench: Bench) -> dict[str, list[str | Path]]:
    python = bench.python[CORE]
    commands: dict[str, list[str | Path]] = {
        _ALONE: [python, "-c", "pass"],
        "import tracefork_core": [python, "-c", "import tracefork_core"],
        "… and record, replay": [python, "-c", "from tracefork_core import record, replay"],
        "tracefork --help": [python.with_name("tracefork"), "--help"],
    }
    if IN_MEMORY in bench.python:
        theirs = bench.python[IN_MEMORY]
        commands |= {
            "import tracefork, the peer": [theirs, "-c", "import tracefork"],
            "tracefork --help, the peer": [theirs.with_name("tracefork"), "--help"],
            "import forkline": [theirs, "-c", "import forkline"],
            "forkline --help": [theirs.with_name("forkline"), "--help"],
            "import vcr": [theirs, "-c", "import vcr"],
        }
    return commands


def _run(command: list[str | Path]) -> Samples:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=clean_environment())
    return {"seconds": [time.perf_counter() - began]}
