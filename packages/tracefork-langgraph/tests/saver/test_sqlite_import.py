"""Threads of LangGraph's SqliteSaver go on with a TapeSaver."""

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
    """A file of a SqliteSaver: two threads, one of them waits, one with a graph inside."""
    file = tmp_path / "old.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        chain(saver).invoke({"messages": [("user", "hi")]}, on("one", api_key="not-for-here-1"))
        chain(saver, interrupt_before=["c"]).invoke({"messages": []}, on("two"))
    return file


def test_everything_comes_over(
    old: Path, path: Path, on: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids, metadata, parents, values and writes are those that SqliteSaver reads."""
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


def test_a_thread_goes_on(old: Path, path: Path, chain: Make, on: Make) -> None:
    """A run that waited when it was brought over is resumed, and the next turn sees the last."""
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 0
    graph = chain(TapeSaver(path))
    assert graph.invoke(None, on("two"))["seen"] == list("abc")
    assert graph.invoke({"messages": []}, on("one"))["seen"] == list("abcabc")


def test_the_document(old: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` says the same, in numbers."""
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["threads"], document["checkpoints"]) == (2, 9)
    assert document["file"] == str(path)
    assert document["bytes"] == path.stat().st_size


def test_what_would_have_to_be_made_is_refused(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pickled value is named, and nothing is left behind; so is a file of something else."""
    with sqlite3.connect(old) as db:
        db.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (pickle.dumps(1),))
    db.close()
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 2
    assert "'pickle'" in capsys.readouterr().err
    other = old.with_name("other.db")
    other.write_bytes(b"not a database at all, but long enough to be one" * 30)
    assert main(["import", "--langgraph-sqlite", str(other), "-o", str(path)]) == 2
    assert [file.name for file in path.parent.iterdir() if "tape" in file.name] == []


def test_a_name_that_is_none_is_refused(
    old: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite keeps anything in any column: one such row would spoil all that is imported."""
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


def test_a_moment_that_is_none_is_no_moment(old: Path, path: Path) -> None:
    """When a checkpoint was made is for people: nothing fails for it."""
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


def test_nothing_is_overwritten(old: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that exists stays as it is."""
    path.write_text("mine")
    assert main(["import", "--langgraph-sqlite", str(old), "-o", str(path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert path.read_text() == "mine"
