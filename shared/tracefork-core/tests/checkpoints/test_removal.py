"""Deleted threads are gone from every byte of the file, and the others stay intact."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tracefork_core.checkpoints.store import CheckpointFile, in_memory

from .conftest import body_of, grow, put, transcript, write

CANARY = b"what nobody may find again " * 40


def everything(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


@pytest.fixture
def kept(store: CheckpointFile) -> list[bytes]:
    """Return a thread that stays, beside one that is deleted."""
    values = transcript(12)
    grow(store, values, "kept")
    put(store, "0000", thread="goes", said=CANARY, note=b"small canary in a row")
    put(store, "0001", "0000", thread="goes", said=CANARY[:500] + b"!" + CANARY)
    write(store, "0001", CANARY[::-1], thread="goes")
    return values


def test_nothing_of_a_deleted_thread_stays(
    store: CheckpointFile, path: Path, kept: list[bytes]
) -> None:
    """Not in free pages and not in the log. The control finds it before the deletion."""
    assert b"small canary" in everything(path)
    assert b"goes" in everything(path)
    store.delete_thread("goes")
    for word in (b"small canary", b"nobody may find", b"goes"):
        assert word not in everything(path)
    assert list(store.search("goes")) == []
    assert [body_of(store, f"{n:04}", "messages", "kept") for n in range(12)] == kept


def test_pruning_keeps_the_latest_of_each_line(store: CheckpointFile, path: Path) -> None:
    """Their values do not depend on deleted ones: a new store reads them."""
    values = transcript(30)
    grow(store, values)
    put(store, "0007", ns="sub", said=b"inner")
    write(store, "0029", b"pending")
    write(store, "0003", b"old")
    store.close()
    before = path.stat().st_size
    store.prune(["t", "no such thread"], keep_latest=True)
    cold = CheckpointFile(path)
    assert [(one.ns, one.id) for one in cold.search("t")] == [("", "0029"), ("sub", "0007")]
    assert body_of(cold, "0029", "messages") == values[-1]
    assert [cold.body("t", one.value) for one in cold.writes("t", "", "0029")] == [b"pending"]
    assert cold.writes("t", "", "0003") == []
    assert path.stat().st_size < before


def test_pruning_keeps_the_bases_of_the_latest_checkpoint(store: CheckpointFile) -> None:
    """The ancestors up to the one that holds a value of each named channel stay."""
    for n in range(6):
        name = "log" if n == 2 else "other"
        put(store, f"{n}", f"{n - 1}" if n else None, **{name: b"value"})  # type: ignore[arg-type]
        write(store, f"{n}", f"write {n}".encode())
    store.prune(["t"], keep_latest=True, rests=lambda one: ["log"])
    assert [one.id for one in store.search("t")] == ["5", "4", "3", "2"]
    assert len(store.writes("t", "", "3")) == 1
    store.prune(["t"], keep_latest=True, rests=lambda one: ["never there"])
    assert [one.id for one in store.search("t")] == ["5", "4", "3", "2"]
    store.prune(["t"], keep_latest=False)
    assert list(store.search()) == []


def test_runs_are_deleted_from_the_middle(store: CheckpointFile, path: Path) -> None:
    """Later checkpoints are stored again, based on earlier ones."""
    values = transcript(9)
    parent = None
    for n, body in enumerate(values):
        put(store, f"{n}", parent, metadata={"run_id": f"r{n // 3}"}, messages=body)
        parent = f"{n}"
    store.delete_for_runs([])
    store.delete_for_runs(["r1", "unknown"])
    cold = CheckpointFile(path)
    assert [one.id for one in cold.search("t")] == ["8", "7", "6", "2", "1", "0"]
    for n in (0, 1, 2, 6, 7, 8):
        assert body_of(cold, f"{n}", "messages") == values[n]
    cold.delete_for_runs(["r0", "r2"])
    assert list(cold.search()) == []


def test_a_copy_does_not_depend_on_its_original(store: CheckpointFile, path: Path) -> None:
    """It has all of the thread, replaces an earlier copy, and outlives the original."""
    values = transcript(12)
    grow(store, values)
    write(store, "0011", b"pending")
    put(store, "0000", thread="copy", said=b"in the way")
    store.copy_thread("t", "copy")
    store.copy_thread("nothing", "void")
    store.delete_thread("t")
    cold = CheckpointFile(path)
    assert {one.thread for one in cold.search()} == {"copy"}
    assert [body_of(cold, f"{n:04}", "messages", "copy") for n in range(12)] == values
    assert [one.id for one in cold.search("copy")][-1] == "0000"
    assert len(cold.writes("copy", "", "0011")) == 1


def test_a_copy_can_be_copied_many_times() -> None:
    """Seventy times, one from the other; the number of rows grows only by what is copied."""
    store = in_memory()
    values = transcript(3)
    grow(store, values, "0")
    for n in range(70):
        store.copy_thread(f"{n}", f"{n + 1}")
    assert [body_of(store, f"{n:04}", "messages", "70") for n in range(3)] == values
    with store._file.reading() as db:
        assert db is not None
        ((last, count),) = db.execute("SELECT max(id), count(*) FROM bodies")
    assert last == count


def test_no_read_runs_while_the_cache_is_emptied(
    store: CheckpointFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread waits until the cache is empty."""
    put(store, "1", said=b"x")
    free: list[bool] = []

    def look() -> None:
        other = threading.Thread(
            target=lambda: free.append(store._file._lock.acquire(blocking=False))
        )
        other.start()
        other.join()

    monkeypatch.setattr(store._bodies, "forget", look)
    store.delete_thread("t")
    assert free == [False]
