"""Many threads and processes write to one file at once; one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.checkpoints.store import CheckpointFile

from .conftest import put

WRITERS = 16
EACH = 4
PROGRAM = """
import sys
from pathlib import Path
from tracefork_core.checkpoints.store import CheckpointFile
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.checkpoint import Checkpoint, Value

store, who, count = CheckpointFile(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for n in range(count):
    body = f"{who} {n} ".encode() * 200
    value = Value("msgpack", sha256(body))
    at, parent = f"{n:06}", f"{n - 1:06}" if n else None
    store.put(Checkpoint(who, "", at, value, {"said": value}, {}, parent), {value.sha: body})
    print(n, flush=True)
"""
READER = """
import sys
from tracefork_core.checkpoints.store import CheckpointFile
print(*(one.id for one in CheckpointFile(sys.argv[1]).search("t")))
"""


def started(path: Path, who: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(path), who, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def whole(store: CheckpointFile, thread: str) -> int:
    """Read a whole thread and return how many checkpoints it has."""
    found = list(store.search(thread))
    for one in found:
        said = f"{thread} {int(one.id)} ".encode() * 200
        assert store.body(thread, one.values["said"]) == said
    return len(found)


def test_sixteen_threads_write_at_once(store: CheckpointFile, path: Path) -> None:
    """Each writes to its own thread and all to one. Nothing is lost, with one store or several."""
    stores = [store, CheckpointFile(path)]
    gate = threading.Barrier(WRITERS)

    def work(n: int) -> None:
        gate.wait()
        for i in range(EACH):
            put(stores[n % 2], f"{i}", thread=f"own {n}", said=b"x")
            put(stores[n % 2], f"{n}-{i}", thread="all", said=f"{n} {i}".encode())

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    assert len(list(store.search("all"))) == WRITERS * EACH
    assert all(len(list(store.search(f"own {n}"))) == EACH for n in range(WRITERS))


def test_processes_write_at_once(path: Path) -> None:
    """They create the file together, and each finds all checkpoints that it has put."""
    children = [started(path, f"p{n}", EACH) for n in range(4)]
    for child in children:
        assert child.communicate()[0].split() == [str(n) for n in range(EACH)]
        assert child.returncode == 0
    store = CheckpointFile(path)
    assert [whole(store, f"p{n}") for n in range(4)] == [EACH] * 4


def test_a_kill_loses_nothing_that_was_put(path: Path) -> None:
    """After `kill -9` every checkpoint whose put returned is complete, and others continue."""
    child = started(path, "p", 1_000_000)
    assert child.stdout is not None
    told = -1
    while told < 20:
        told = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    told = max([told, *(int(line) for line in child.communicate()[0].splitlines())])
    store = CheckpointFile(path)
    assert whole(store, "p") in (told + 1, told + 2)
    put(store, "next", f"{told:06}", thread="p", said=b"x")
    assert store.find("p", "") is not None


def test_reading_the_header_keeps_the_locks_of_the_file(store: CheckpointFile, path: Path) -> None:
    """Without them, another process takes itself for the last one, and later puts are lost."""
    put(store, "1", said=b"x")
    with pytest.raises(tracefork.TapeError):
        tracefork.Tape.open(path)
    assert started(path, "p", EACH).communicate()[0].split() == [str(n) for n in range(EACH)]
    put(store, "2", said=b"y")
    command = [sys.executable, "-c", READER, str(path)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert found.split() == ["2", "1"]


def test_a_forked_process_has_its_own_connection(store: CheckpointFile, path: Path) -> None:
    """A child made by fork writes and ends, and its parent's file stays intact."""
    put(store, "1", said=b"x")
    child = os.fork()
    if child == 0:
        try:
            put(store, "2", said=b"y")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    put(store, "3", said=b"z")
    assert [one.id for one in CheckpointFile(path).search()] == ["3", "2", "1"]
