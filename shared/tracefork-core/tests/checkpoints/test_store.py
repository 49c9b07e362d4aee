"""Every store of a file finds what was put into it, and no other file holds it."""

from __future__ import annotations

import gc
import os
import stat
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.checkpoints.store import CheckpointFile, checkpoint_file, in_memory

from .conftest import body_of, put, transcript, value, write


def test_a_file_appears_at_the_first_put(store: CheckpointFile, path: Path) -> None:
    """Reading before finds nothing and creates nothing. The file belongs to its owner alone."""
    assert store.find("t", "") is None
    assert list(store.search()) == []
    assert store.writes("t", "", "1") == []
    store.delete_thread("t")
    assert list(path.parent.iterdir()) == []
    put(store, "1", said=b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_checkpoint_reads_as_it_was_put(store: CheckpointFile, path: Path) -> None:
    """By its id, as the latest of its namespace, and with all its parts, in another store."""
    first = put(store, "1", said=b"one", metadata={"step": 1, "parents": {"": "0"}})
    second = put(store, "2", "1", said=b"two")
    inner = put(store, "3", ns="sub:1", said=b"three")
    store.close()
    other = CheckpointFile(path)
    assert other.find("t", "", "1") == first
    assert other.find("t", "") == second
    assert other.find("t", "sub:1") == inner
    assert other.find("t", "", "3") is None
    assert other.find("u", "") is None
    assert body_of(other, "1", "said") == b"one"


def test_a_search_starts_with_the_latest() -> None:
    """Of a thread, a namespace or all; before an id; with metadata; with a limit."""
    store = in_memory()
    for n in range(600):  # More than lie on a page of the store's.
        put(store, f"{n:04}", metadata={"even": n % 2 == 0, "n": n})
    put(store, "0300", thread="u", metadata={"n": 1})
    ids = [one.id for one in store.search("t")]
    assert ids == [f"{n:04}" for n in reversed(range(600))]
    assert [one.thread for one in store.search(before="0301", limit=2)] == ["u", "t"]
    assert [one.id for one in store.search("t", metadata={"n": 7})] == ["0007"]
    assert len(list(store.search("t", metadata={"even": True}, limit=299))) == 299
    assert [one.id for one in store.search("t", "", before="0002")] == ["0001", "0000"]
    assert list(store.search("t", metadata={"missing": 1})) == []
    # LangGraph's own checkpointers find what has no such entry, too.
    assert len(list(store.search("t", metadata={"missing": None}))) == 600
    assert list(store.search("t", limit=0)) == []


def test_a_checkpoint_of_the_same_id_is_replaced(store: CheckpointFile) -> None:
    """The last one counts."""
    put(store, "1", said=b"one")
    put(store, "1", said=b"two", more=b"three")
    found = store.find("t", "")
    assert found is not None
    assert found.values == {"said": value(b"two"), "more": value(b"three")}
    assert len(list(store.search())) == 1


def test_writes_are_sorted_by_path_task_and_index(store: CheckpointFile) -> None:
    """The first write of an index stays; one with a negative index is replaced."""
    for at, body, where in (
        ("1", b"second", {"task": "a", "path": "p2"}),
        ("1", b"first", {"task": "b", "path": "p1"}),
        ("1", b"late", {"task": "b", "path": "p1"}),
        ("1", b"asked", {"task": "b", "path": "p1", "idx": -3}),
        ("1", b"asked again", {"task": "b", "path": "p1", "idx": -3}),
        ("2", b"of another", {}),
    ):
        write(store, at, body, **where)
    found = [store.body("t", one.value) for one in store.writes("t", "", "1")]
    assert found == [b"asked again", b"first", b"second"]


def test_values_outside_the_store_are_read_where_they_are() -> None:
    """A value put without its bytes takes no space, and is a base for later values."""
    values = transcript(3)
    elsewhere = {value(body).sha: body for body in (*values[:2], b"head of t/0")}
    store = in_memory(elsewhere.__getitem__)
    made = put(in_memory(), "0", messages=values[0])
    store.put(made, {})
    put(store, "1", "0", messages=values[2])
    assert body_of(store, "0", "messages") == values[0]
    assert body_of(store, "1", "messages") == values[2]
    with pytest.raises(tracefork.TapeError):
        in_memory().put(made, {})


def test_a_path_has_one_store(path: Path) -> None:
    """All users of a path share it while one of them holds it."""
    first = checkpoint_file(path)
    assert checkpoint_file(str(path)) is first
    put(first, "1", said=b"x")
    del first
    gc.collect()
    assert not path.with_name(path.name + "-wal").exists()
    assert checkpoint_file(path).find("t", "") is not None


def test_links_to_a_file_lead_to_its_store(path: Path) -> None:
    """Also before the file exists, and with any spelling of its folder."""
    link = path.with_name("link.tape")
    link.symlink_to(path)
    (path.parent / "sub").mkdir()
    first = checkpoint_file(link)
    put(first, "1", said=b"x")
    assert not path.is_symlink()
    assert checkpoint_file(path) is first
    assert checkpoint_file(path.parent / "sub" / ".." / path.name) is first


def test_the_name_of_a_new_file_is_on_disk(
    store: CheckpointFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced once the file has its name, so both survive a loss of power."""
    synced: list[tuple[bool, bool]] = []

    def sync(file: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(file).st_mode), path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    put(store, "1", said=b"x")
    assert synced == [(True, True)]


def test_a_full_disk_raises_and_the_store_recovers(store: CheckpointFile) -> None:
    """Each put raises SQLite's own error; once there is room, the next put works."""
    put(store, "1", said=b"x")
    with store._file.reading() as db:
        assert db is not None
        db.execute("PRAGMA max_page_count=12")
    for _ in range(2):
        with pytest.raises(tracefork.TapeError, match="disk is full"):
            put(store, "2", said=os.urandom(200_000))
    db.execute("PRAGMA max_page_count=9999")
    put(store, "3", said=b"y")
    assert [one.id for one in store.search("t")] == ["3", "1"]


def test_a_failed_commit_is_rolled_back(store: CheckpointFile) -> None:
    """It leaves no open transaction."""
    put(store, "1", said=b"x")
    with store._file.reading() as db:
        assert db is not None
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("CREATE TEMP TABLE whole (id INTEGER PRIMARY KEY)")
        db.execute("CREATE TEMP TABLE part (of REFERENCES whole DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(tracefork.TapeError, match="FOREIGN KEY"), store._file.writing() as db:
        db.execute("INSERT INTO part VALUES (1)")
    put(store, "2", said=b"y")
    assert [one.id for one in store.search("t")] == ["2", "1"]


def test_a_deleted_file_loses_its_threads(store: CheckpointFile, path: Path) -> None:
    """The next put creates a new file."""
    put(store, "1", said=b"old")
    for file in path.parent.iterdir():
        file.unlink()
    assert store.find("t", "") is None
    put(store, "2", said=b"new")
    assert [one.id for one in CheckpointFile(path).search()] == ["2"]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A mistyped name must not create a folder."""
    store = CheckpointFile(tmp_path / "nowhere" / "threads.tape")
    with pytest.raises(tracefork.UsageError, match=r"\.tape"):
        put(store, "1", said=b"x")
