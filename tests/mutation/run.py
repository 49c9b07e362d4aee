"""Break core in one place at a time, and see whether a test of that room fails: `tox -e mutation`.

Core asks who calls it, and parts of it run in child processes: so it is broken where it is
installed, as plain source. A mutator that wraps functions would be one more caller. Each mutant
meets a fork of a Python that has loaded all that the tests load, except core.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.mutants import Mutant, mutants

TESTS = Path("shared/tracefork-core/tests")
OPTIONS = ["-xqp", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
HEAVY = "aiohttp anthropic google.genai httpx httpx2 hypothesis numpy openai requests scipy.stats"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a mutant is: its file, and the path of that in the package."""

    file: Path
    name: str
    mutant: Mutant

    def __str__(self) -> str:
        source = self.file.read_bytes()[self.mutant.start : self.mutant.end]
        before = " ".join(source.decode().split())[:90]
        return f"{self.name}:{self.mutant.line}  {before}  ->  {self.mutant.text[:90]}"


def sites(rooms: list[str]) -> list[Site]:
    """Return every mutant of some rooms of the installed core."""
    spec = find_spec("tracefork_core")
    if spec is None or spec.origin is None or "site-packages" not in spec.origin:
        sys.exit("tracefork-core is not installed as a wheel here: its checkout would be broken")
    root = Path(spec.origin).parent
    files = [file for room in rooms for file in sorted((root / room).rglob("*.py"))]
    return [
        Site(file, str(file.relative_to(root)), mutant)
        for file in files
        for mutant in mutants(file.read_bytes())
    ]


def in_order(site: Site, kills: Counter[Path]) -> list[Path]:
    """Return the files of tests of a room: of a like name, then what kills most, then the short."""
    words = set(site.file.stem.split("_"))
    files = (TESTS / Path(site.name).parts[0]).glob("test_*.py")

    def order(file: Path) -> tuple[bool, int, int]:
        return words.isdisjoint(file.stem.split("_")), -kills[file], file.stat().st_size

    return sorted(files, key=order)


def killer(site: Site, number: int, tests: list[Path], patience: float) -> Path | None:
    """Return the file of tests that fails, or does not end, with a mutant in place."""
    source, stat = site.file.read_bytes(), site.file.stat()
    site.file.write_bytes(site.mutant.applied(source))
    # A moment of its own: compiled files are believed by the second.
    os.utime(site.file, (stat.st_atime, stat.st_mtime + number))
    try:
        return failing(tests, patience)
    finally:
        site.file.write_bytes(source)
        os.utime(site.file, (stat.st_atime, stat.st_mtime))


def failing(files: list[Path], patience: float) -> Path | None:
    """Return the first of some files whose tests fail in a fork of this process."""
    told, telling = os.pipe()
    child = os.fork()
    if not child:
        _test(files, telling)
    os.close(telling)
    ended = os.pidfd_open(child)
    if not select.select([ended], [], [], patience)[0]:
        os.killpg(child, signal.SIGKILL)
    failed = os.waitpid(child, 0)[1] != 0
    begun = len(os.read(told, len(files)))
    os.close(told)
    os.close(ended)
    return files[begun - 1] if failed else None


def _test(files: list[Path], telling: int) -> None:
    """Run files until one fails, and write a byte for each that is begun."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    status = 1
    try:
        for file in files:
            os.write(telling, b".")
            if pytest.main([*OPTIONS, str(file)]):
                break
        else:
            status = 0
    finally:
        os._exit(status)


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    middle = (hits + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(hits * (of - hits) / of + z * z / 4)
    return middle - half, middle + half


def main() -> None:
    """Draw a sample, break and test, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", default=["session", "tape", "blaming"])
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=300, help="seconds for a mutant")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # What is broken is mended first.
    everything = sites(asked.rooms)
    drawn = random.Random(asked.seed).sample(everything, min(asked.sample, len(everything)))
    for name in HEAVY.split():
        import_module(name)
    kills: Counter[Path] = Counter()
    for number, site in enumerate(drawn, start=1):
        began, what = time.monotonic(), str(site)
        by = killer(site, number, in_order(site, kills), asked.patience)
        if by and not kills[by] and failing([by], asked.patience):
            sys.exit(f"{by} fails with nothing broken as well")
        if by:
            kills[by] += 1
        word = f"killed by {by.name}" if by else "SURVIVED"
        seconds = time.monotonic() - began
        print(f"{kills.total():3} of {number:3} {seconds:4.0f} s  {what}  {word}", flush=True)
    killed = kills.total()
    low, high = wilson(killed, len(drawn))
    print(f"{killed} of {len(drawn)} killed: {killed / len(drawn):.1%}", end=" ")
    print(f"({low:.1%} to {high:.1%}), drawn of {len(everything):,} with seed {asked.seed}")


if __name__ == "__main__":
    main()
