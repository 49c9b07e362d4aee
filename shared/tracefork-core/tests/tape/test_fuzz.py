"""A stranger's tape is only data: any bytes are read or refused, within bounds of time and memory.

`TRACEFORK_FUZZ=100000` reads that many mutants for each Python. Mutant N is the same on every
machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, TapeError, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_core.tape import schema
from tracefork_core.tape.digest import chain
from tracefork_testkit import ProviderServer

HERE = Path(__file__).parent
MUTANTS = int(os.environ.get("TRACEFORK_FUZZ", "200"))
FIRST = (sys.version_info.minor - 11) * MUTANTS
"""Each Python reads mutants of its own."""
BATCH = 200
ENOUGH = 10


def copied(tape: Path, folder: Path) -> None:
    """Copy a tape with its side files."""
    folder.mkdir(parents=True)
    for suffix in ("", "-wal", "-flight"):
        if schema.beside(tape, suffix).exists():
            shutil.copyfile(schema.beside(tape, suffix), folder / f"run.tape{suffix}")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tapes to mutate: complete, cut off in flight, and of each earlier format."""
    folder = tmp_path_factory.mktemp("originals")
    tape = tmp_path_factory.mktemp("recorded") / "run.tape"
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Where is order 17? " * 30}]
    with ProviderServer() as server, httpx2.Client(verify=False, timeout=20) as http:
        with record(tape):
            agent = begin_step("agent", "support")
            before = current_step.set(begin_step("model", "gpt", parent=agent))
            for _ in range(5):
                asked = {"model": "gpt-5-mini", "messages": messages}
                answer = http.post(f"{server.url}/v1/chat/completions", json=asked).json()
                messages += [answer["choices"][0]["message"], {"role": "user", "content": "And?"}]
            with http.stream("GET", f"{server.url}/chunked?n=4") as stream:
                next(stream.iter_raw())
                copied(tape, folder / "cut-off")
            end_step(agent)
            current_step.reset(before)
        copied(tape, folder / "complete")
    for golden in (HERE / "golden").iterdir():
        copied(golden, folder / golden.stem)
    return folder


def hunted(originals: Path, first: int, end: int, *wrong: str) -> list[str]:
    """Read mutants; after one that kills the process, continue in a new process."""
    found: list[str] = []
    while first < end and len(found) < ENOUGH:
        words = [str(HERE / "fuzzer.py"), str(originals), str(first), "1", str(end), *wrong]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        last = first
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                finding = json.loads(line)
                found.append("mutant {number} ({original}, {kind}): {what}".format(**finding))
            else:
                last = int(line)
        if done.returncode == 0:
            break
        found.append(f"mutant {last}: the process ended with {done.returncode}:\n{done.stderr}")
        first = last + 1
    return found


@pytest.mark.parametrize("first", range(FIRST, FIRST + MUTANTS, BATCH))
def test_every_mutant_is_read_or_refused_within_bounds(originals: Path, first: int) -> None:
    """The bounds are 2 s, 256 MB, TraceforkError as the only error, and plain output."""
    found = hunted(originals, first, min(first + BATCH, FIRST + MUTANTS))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("crash", "ended with -11"),
        ("hang", "ended with -27"),
        ("eat", "MemoryError"),
        ("raise", "KeyError"),
        ("escape", "prints {'\\x1b'}"),
        ("write", "'beside'"),
    ],
)
def test_the_fuzzer_finds_planted_faults(originals: Path, wrong: str, said: str) -> None:
    """Negative control: each fault is found at the first mutant."""
    assert any(said in finding for finding in hunted(originals, 0, 1, wrong))


def test_a_parent_whose_name_no_file_has_is_refused(originals: Path, tmp_path: Path) -> None:
    """Looking for the file would fail with an error of the operating system."""
    tape = tmp_path / "one.tape"
    shutil.copyfile(originals / "complete" / "run.tape", tape)
    origin = json.dumps({"name": "n" * 300, "at": 0, "digest": chain([])}).encode()
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("INSERT INTO meta VALUES ('origin', ?)", (origin,))
    with pytest.raises(TapeError, match="parent has 300 bytes"):
        Tape.open(tape)


def test_tapes_that_call_each_other_parents_are_refused(originals: Path, tmp_path: Path) -> None:
    """A parent may only have the parents that its branch names, so there is no endless loop."""
    tapes = [tmp_path / "one.tape", tmp_path / "two.tape"]
    for tape, other in zip(tapes, reversed(tapes), strict=True):
        shutil.copyfile(originals / "complete" / "run.tape", tape)
        origin = json.dumps({"name": other.name, "at": 0, "digest": chain([])}).encode()
        with closing(sqlite3.connect(tape)) as db, db:
            db.execute("INSERT INTO meta VALUES ('origin', ?)", (origin,))
    with pytest.raises(TapeError, match=tapes[0].name), Tape.open(tapes[0]) as opened:
        _ = opened.exchanges
