"""Threads of LangGraph's SqliteSaver continue with a TapeSaver."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from tracefork_core.checkpoints.store import checkpoint_file
from tracefork_core.cli.main import main
from tracefork_langgraph import TapeSaver

Make = Callable[..., Any]


@pytest.fixture
def old(tmp_path: Path, chain: Make, on: Make) -> Path:
    """A file of a SqliteSaver with two threads, one of which waits."""
    file = tmp_path / "old.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        chain(saver).invoke({"messages": [("user", "hi")]}, on("one", api_key="not-for-here-1"))
        chain(saver, interrupt_before=["c"]).invoke({"messages": []}, on("two"))
    return file


def test_import_copies_everything_that_sqlite_saver_reads(
    old: Path, path: Path, on: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids, metadata, parents, values and writes are equal; secrets in metadata are masked."""
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 0
    assert "2 threads · 9 checkpoints" in capsys.readouterr().out
    with SqliteSaver.from_conn_string(str(old)) as saver:
        for thread in ("one", "two"):
            expected = list(saver.list(on(thread)))
            found = list(TapeSaver(path).list(on(thread)))
            for one in expected:
                if "api_key" in one.metadata:
                    one.metadata["api_key"] = "tracefork-secret-api_key"
            assert found == expected
    assert b"not-for-here-1" not in path.read_bytes()


def test_imported_thread_continues(old: Path, path: Path, chain: Make, on: Make) -> None:
    """A run that waited is resumed, and the next turn sees the state of the last."""
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 0
    graph = chain(TapeSaver(path))
    assert graph.invoke(None, on("two"))["seen"] == list("abc")
    assert graph.invoke({"messages": []}, on("one"))["seen"] == list("abcabc")


def test_import_prints_its_counts_as_json(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json` prints threads, checkpoints, the file and its size."""
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["threads"], document["checkpoints"]) == (2, 9)
    assert document["file"] == str(path)
    assert document["bytes"] == path.stat().st_size


def test_import_refuses_pickled_values_and_other_files(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the format, and leaves no file behind."""
    with sqlite3.connect(old) as db:
        db.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (pickle.dumps(1),))
    db.close()
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 2
    assert "'pickle'" in capsys.readouterr().err
    other = old.with_name("other.db")
    other.write_bytes(b"not a database at all, but long enough to be one" * 30)
    assert main(["import", "--langgraph-sqlite", str(other), "-o", str(path)]) == 2
    assert [file.name for file in path.parent.iterdir() if "tape" in file.name] == []


def test_import_refuses_a_column_with_a_wrong_type(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite stores any type in any column: one such row would spoil the whole import."""
    columns = {
        "checkpoints": ["thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id"],
        "writes": ["task_id", "channel", "idx"],
    }
    for table, names in columns.items():
        for name in names:
            damaged = Path(shutil.copy(old, old.with_name("damaged.db")))
            with sqlite3.connect(damaged) as db:
                one = f"(SELECT min(rowid) FROM {table})"
                db.execute(f"UPDATE {table} SET {name} = x'ff' WHERE rowid = {one}")
            db.close()
            assert main(["import", "--langgraph-sqlite", str(damaged), "-o", str(path)]) == 2
            assert re.search(
                r"(checkpoint|write) .+ is corrupt: its (\w+) is", capsys.readouterr().err
            ), name
            assert not path.exists()


def test_import_ignores_an_impossible_creation_time(old: Path, path: Path) -> None:
    """The time is only for people, so it must not make an import fail."""
    with sqlite3.connect(old) as db:
        for thread, moment in ("one", "0001-01-01T00:00:00"), ("two", "9999-12-31T00:00:00"):
            head = msgspec.msgpack.encode({"ts": moment, "channel_values": {}})
            db.execute("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ?", (head, thread))
    db.close()
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 0
    assert {(one.thread, one.made) for one in checkpoint_file(path).search()} == {
        ("one", 0),
        ("two", 0),
    }


def test_import_does_not_overwrite_a_file(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command exits with 2 and leaves the file unchanged."""
    path.write_text("mine")
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert path.read_text() == "mine"
