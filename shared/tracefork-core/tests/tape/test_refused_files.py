"""A file that is not a tape, or is damaged, is refused with one clear error and not deleted."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, TapeError, UsageError, record, replay
from tracefork_core.tape.creation import scratch_folder
from tracefork_testkit import ProviderServer

Make = Callable[[Path], object]


def _other_database(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE events (a)")
    db.commit()
    db.close()


NO_TAPES: dict[str, Make] = {
    "text": lambda path: path.write_text("hello\n" * 1000),
    "empty": lambda path: path.write_bytes(b""),
    "half a header": lambda path: path.write_bytes(b"SQLite form"),
    "another database": _other_database,
}


def read_everything(path: Path) -> None:
    with Tape.open(path) as tape:
        for exchange in tape.exchanges:
            assert exchange.request_body
            assert exchange.response_body


@pytest.fixture
def recorded(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record three exchanges with bodies that do not compress."""
    with record(tape):
        for i in range(3):
            http.post(f"{provider.url}/echo", content=os.urandom(9000) + bytes([i]))
    return tape


@pytest.mark.parametrize("make", NO_TAPES.values(), ids=NO_TAPES)
def test_a_file_that_is_not_a_tape_is_refused(tape: Path, make: Make) -> None:
    """Opening, replaying and showing raise a TapeError that names the file."""
    make(tape)
    with pytest.raises(TapeError, match=r"run\.tape"):
        Tape.open(tape)
    with pytest.raises(TapeError, match=r"run\.tape"), replay(tape):
        pass


def test_a_folder_and_a_missing_file_are_usage_errors(tape: Path) -> None:
    """The path is wrong then, and no tape is damaged."""
    with pytest.raises(UsageError, match=r"run\.tape"):
        Tape.open(tape)
    with pytest.raises(UsageError, match=tape.parent.name):
        Tape.open(tape.parent)
    with pytest.raises(UsageError, match=tape.parent.name), record(tape.parent, overwrite=True):
        pass
    with pytest.raises(UsageError, match="no"), record(tape.parent / "no" / "run.tape"):
        pass


@pytest.mark.parametrize("kept", [100, 4096, 5000, 0.5, 0.9])
def test_a_truncated_tape_is_a_tape_error(recorded: Path, kept: float) -> None:
    """Reading raises no other error, wherever the file is cut."""
    data = recorded.read_bytes()
    recorded.write_bytes(data[: int(kept if kept > 1 else kept * len(data))])
    with pytest.raises(TapeError, match=recorded.name):
        read_everything(recorded)


def test_an_existing_file_is_not_overwritten_without_the_flag(recorded: Path) -> None:
    """This holds for any kind of file."""
    before = recorded.read_bytes()
    with pytest.raises(UsageError, match="overwrite=True"), record(recorded):
        pass
    assert recorded.read_bytes() == before
    with record(recorded, overwrite=True):
        pass
    with Tape.open(recorded) as tape:
        assert tape.exchanges == []


@pytest.mark.parametrize("make", [NO_TAPES["text"], _other_database], ids=["text", "database"])
def test_overwrite_never_deletes_another_file(tape: Path, make: Make) -> None:
    """Even overwrite=True keeps a file that is not a tape."""
    make(tape)
    before = tape.read_bytes()
    with pytest.raises(TapeError, match=tape.name), record(tape, overwrite=True):
        pass
    assert tape.read_bytes() == before


def test_a_recording_that_was_killed_before_its_first_byte_can_be_overwritten(tape: Path) -> None:
    """It left an empty file, so nothing is lost."""
    tape.touch()
    with record(tape, overwrite=True):
        pass
    with Tape.open(tape) as recorded:
        assert recorded.complete


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nothing")])
def test_overwrite_never_replaces_a_device_or_a_broken_link(
    make: Callable[[Path], object], tape: Path
) -> None:
    """Only a regular file can be replaced."""
    make(tape)
    with pytest.raises(UsageError, match=tape.name):
        record(tape, overwrite=True).__enter__()
    assert os.path.lexists(tape)


@pytest.mark.parametrize("overwrite", [False, True])
def test_two_processes_cannot_record_to_one_file(tape: Path, overwrite: bool) -> None:
    """The second one gets an error, and the first one's tape is not touched."""
    child = (
        "import sys, tracefork_core as t\n"
        "try:\n"
        f"    t.record(sys.argv[1], overwrite={overwrite}).__enter__()\n"
        "except t.UsageError as error: print(error)"
    )
    with record(tape) as run:
        done = subprocess.run(
            [sys.executable, "-c", child, str(tape)], capture_output=True, text=True, check=True
        )
    assert ("in use" if overwrite else "already exists") in done.stdout
    assert run.receipt is not None
    with Tape.open(tape) as recorded:
        assert recorded.complete


def test_a_newer_format_is_read_as_far_as_it_is_understood(recorded: Path) -> None:
    """Unknown tables and events are ignored, and known ones are read."""
    with Tape.open(recorded) as tape:
        digest = tape.digest
    with closing(sqlite3.connect(recorded)) as db, db:
        db.execute("PRAGMA user_version=7")
        db.execute("CREATE TABLE moods (id INTEGER PRIMARY KEY, mood TEXT)")
    with Tape.open(recorded) as tape:
        assert tape.digest == digest
    read_everything(recorded)


@pytest.mark.parametrize(
    "more",
    [
        "CREATE TABLE moods (a)",
        "CREATE VIEW moods AS SELECT 1",
        "CREATE INDEX moods ON log (segment)",
        "CREATE TRIGGER moods AFTER INSERT ON log BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE moods USING fts5(a)",
    ],
)
def test_a_schema_with_more_than_a_tape_has_is_refused(recorded: Path, more: str) -> None:
    """Other objects beside the tables are not even read."""
    with closing(sqlite3.connect(recorded)) as db, db:
        db.execute(more)
    with pytest.raises(TapeError, match="moods"):
        Tape.open(recorded)
    if "CREATE TABLE" in more:
        return
    with closing(sqlite3.connect(recorded)) as db, db:
        db.execute("PRAGMA user_version=7")
    with pytest.raises(TapeError, match="moods"):
        Tape.open(recorded)


def test_a_view_in_the_place_of_a_table_is_refused(recorded: Path) -> None:
    """A view could run a stranger's SQL, so it is not opened."""
    with closing(sqlite3.connect(recorded)) as db, db:
        db.executescript(
            "ALTER TABLE log RENAME TO hidden; CREATE VIEW log AS SELECT 1 AS seq, 0 AS segment, "
            "0 AS crc, randomblob(1000000) AS events, x'' AS bodies"
        )
    with pytest.raises(TapeError, match="log"):
        Tape.open(recorded)


@pytest.mark.parametrize(
    ("document", "value", "what"),
    [
        ("aside", '{"lane":"main","seam":"x","started":1,"turns":[[0,999999999999]]}', "turns"),
        ("aside", '{"lane":"main","seam":"x","started":1,"turns":[[5]]}', "turns"),
        ("aside", "[" * 5000, "event"),
        ("aside", '{"lane":1}', "event"),
        ("payload", '{"n":7,"request":{"method":"","url":"","headers":[],"body":""}}', "exchange"),
    ],
)
def test_events_no_recorder_writes_are_refused(
    recorded: Path, document: str, value: str, what: str, alter: Any
) -> None:
    """They could exhaust memory or break a replay midway, so reading the tape refuses them."""

    def change(line: bytes) -> bytes:
        event = json.loads(line)
        if event["kind"] != "exchange":
            return line
        parts = {name: json.dumps(event[name]) for name in ("payload", "aside")} | {document: value}
        payload, aside = parts["payload"], parts["aside"]
        return f'{{"kind":"exchange","payload":{payload},"aside":{aside}}}\n'.encode()

    alter(recorded, events=change)
    with pytest.raises(TapeError, match=what), Tape.open(recorded) as tape:
        _ = tape.exchanges


@pytest.mark.parametrize("part", [bytes.partition, bytes.rpartition])
def test_an_invalid_url_is_refused(
    recorded: Path,
    alter: Callable[..., None],
    part: Callable[[bytes, bytes], tuple[bytes, bytes, bytes]],
) -> None:
    """No recorder writes one, and readers of a tape parse its URLs."""

    def changed(line: bytes) -> bytes:
        before, name, after = part(line, b'"url":"')
        return before + name + b"http://[::1" + after[after.index(b'"') :] if name else line

    alter(recorded, events=changed)
    with Tape.open(recorded) as tape, pytest.raises(TapeError, match="exchange 0"):
        tape.exchanges  # noqa: B018
    with pytest.raises(TapeError, match="exchange 0"), replay(recorded):
        pass


def test_scratch_of_a_tape_in_a_read_only_folder_is_made_elsewhere(tmp_path: Path) -> None:
    """So `try` and `bisect` work on a tape that only lies where it may be read."""
    assert scratch_folder(tmp_path / "run.tape", "try").parent == tmp_path
    elsewhere = scratch_folder(Path("/proc/run.tape"), "try")
    assert elsewhere.parent == Path(tempfile.gettempdir())
    elsewhere.rmdir()
