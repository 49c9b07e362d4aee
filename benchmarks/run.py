"""Measure tracefork beside the tools people know: `python benchmarks/run.py`.

Everything is measured on this machine in one run, in turns, so that ratios hold even if times do
not. docs/benchmarks.md has the results, docs/explanation/performance.md the method and the reasons.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import peers
from bench import opened
from document import Section, write
from recorders import OURS
from table import Measurement
from tracefork_core import __version__

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 132
MEASUREMENTS = (
    "first_token",
    "record_overhead",
    "bedrock_overhead",
    "service",
    "proxying",
    "replay_rate",
    "ambient",
    "fan_out",
    "startup",
    "in_pytest",
    "tape_size",
    "tape_access",
    "comparing",
    "viewing",
    "gate",
    "observing",
    "terminal_view",
    "reporting",
    "checkpoints",
    "forks",
    "known_truth",
    "planted_faults",
    "coin",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0: a benchmark does not pass or fail."""
    parser = argparse.ArgumentParser(description="Measure tracefork beside the tools people know.")
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller cases")
    parser.add_argument(
        "--no-peers", action="store_true", help="tracefork and the plain client only"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--write", type=Path, help="also write the tables into this document")
    parser.add_argument("--folder", type=Path, help="folder for tapes, on the disk to measure")
    options = parser.parse_args(argv)
    if options.write and (options.quick or options.no_peers):
        parser.error("--write needs a complete run: leave out --quick and --no-peers")
    if options.write and not options.write.is_file():
        parser.error(f"{options.write} does not exist: --write needs a document to write into")
    order = [importlib.import_module(name).TITLE for name in MEASUREMENTS]
    python = dict.fromkeys(OURS, Path(sys.executable))
    if not options.no_peers:
        python |= dict.fromkeys(peers.PEERS, peers.install())
    found: list[Measurement] = []
    with (
        tempfile.TemporaryDirectory(dir=options.folder or Path.cwd()) as folder,
        opened(python, Path(folder), quick=options.quick) as bench,
    ):
        for name in options.only or MEASUREMENTS:
            measurement: Measurement = importlib.import_module(name).measure(bench)
            found.append(measurement)
            if options.write:
                write(options.write, Section.of(measurement, _words(_setting())), order)
            if not options.json:
                _show(measurement.table())
    if options.json:
        document = {**_setting(), "measurements": [one.document() for one in found]}
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        _show(_words(_setting()))
    return 0


def _show(what: Table | str) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    # Wrapped lines on a narrow terminal are better than cut-off numbers.
    console.width = max(console.width, _WIDTH)
    console.print(what)


def _words(setting: dict[str, object]) -> str:
    return " · ".join(f"{name} {value}" for name, value in setting.items())


def _setting() -> dict[str, object]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "tracefork-core": __version__,
        **{name: version(name) for name in ("httpx2", "openai", "langgraph-checkpoint")},
    }


if __name__ == "__main__":
    raise SystemExit(main())
