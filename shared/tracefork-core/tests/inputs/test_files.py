"""A tape notes the files of a run, and a replay says which of them differ."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import (
    DivergenceError,
    SurroundingsWarning,
    Tape,
    TapeError,
    fork,
    record,
    replay,
)
from tracefork_core.tape.surroundings import FileState
from tracefork_testkit import ProviderServer

from ..conftest import Alter

NOTES = "buy milk"
READS: dict[str, Callable[[Path], object]] = {
    "open": lambda path: open(path).close(),  # noqa: PTH123
    "pathlib": lambda path: path.read_bytes(),
    "os.open": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "update": lambda path: open(path, "r+b").close(),  # noqa: PTH123
    "bytes": lambda path: open(os.fsencode(path)).close(),  # noqa: PTH123
    "sqlite3": lambda path: sqlite3.connect(path).close(),
    "sqlite3 by URL": lambda path: sqlite3.connect(f"file:{path}?mode=ro", uri=True).close(),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with a file in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "notes.txt").write_text(NOTES)
    return folder


def noted(tape: Path, how: str) -> dict[str, FileState]:
    """Return the files of a tape that were used in one way."""
    with Tape.open(tape) as opened:
        return {file.path: file for file in opened.files if file.how == how}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_file_that_was_read_is_noted_and_compared(
    tape: Path, folder: Path, read: Callable[[Path], object]
) -> None:
    """With its size, a hash and the line that read it."""
    notes = folder / "notes.txt"
    with record(tape):
        read(notes)
    file = noted(tape, "read")["notes.txt"]
    assert (file.size, file.sha) == (8, sha256(NOTES.encode()).hexdigest())
    assert (file.site or "").startswith("test_files.py:")
    with replay(tape) as run:
        read(notes)
    assert run.differences == []
    notes.write_text("buy beer")
    with pytest.warns(SurroundingsWarning, match="notes.txt differs"), replay(tape) as run:
        read(notes)
    assert len(run.differences) == 1
    notes.unlink()
    if read is not READS["sqlite3"]:
        with pytest.raises((OSError, sqlite3.Error)) as raised, replay(tape):
            read(notes)
        assert "notes.txt is missing now" in "".join(raised.value.__notes__)


def test_content_is_on_no_tape(
    tmp_path: Path, folder: Path, written: Callable[[Path], bytes]
) -> None:
    """Unless the agent sends it."""
    tape = tmp_path / "tapes" / "run.tape"
    tape.parent.mkdir()
    with record(tape):
        (folder / "notes.txt").read_text()
        (folder / "out.txt").write_text("what was written")
    held = written(tape)
    assert b"buy milk" not in held
    assert b"what was written" not in held
    assert noted(tape, "written")["out.txt"].size == len("what was written")


def test_a_large_file_is_compared_by_its_size_and_its_beginning(tape: Path, folder: Path) -> None:
    """A hash of all of it would take as long as to read it."""
    big = folder / "big"
    big.write_bytes(bytes(3 << 20))
    with record(tape):
        big.open("rb").close()
    assert noted(tape, "read")["big"].size == 3 << 20
    with big.open("ab") as file:
        file.write(b"!")
    with pytest.warns(SurroundingsWarning, match="big differs"), replay(tape):
        big.open("rb").close()


def test_a_file_that_the_run_wrote_before_is_no_input(tape: Path, folder: Path) -> None:
    """The control reads it first."""

    def agent() -> None:
        (folder / "draft.txt").write_text("draft")
        (folder / "draft.txt").read_text()

    with record(tape):
        agent()
    assert "draft.txt" not in noted(tape, "read")
    with replay(tape) as run:
        agent()
    assert run.differences == []
    with pytest.warns(SurroundingsWarning, match="draft.txt is read, which the recording"):
        with replay(tape):
            (folder / "draft.txt").read_text()


def ask_model(url: str, http: httpx2.Client, cache: Path, *, database: bool) -> str:
    """Ask once, and keep the answer in a cache on disk, as dspy does."""
    if database:
        with closing(sqlite3.connect(cache)) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS cache (question TEXT PRIMARY KEY, answer TEXT)")
            if row := db.execute("SELECT answer FROM cache WHERE question = 'q'").fetchone():
                return str(row[0])
            answer = http.post(f"{url}/echo", content=b"q").text
            db.execute("INSERT INTO cache VALUES ('q', ?)", (answer,))
            return answer
    if cache.exists():
        return str(json.loads(cache.read_text())["q"])
    answer = http.post(f"{url}/echo", content=b"q").text
    cache.write_text(json.dumps({"q": answer}))
    return answer


@pytest.mark.parametrize("database", [True, False])
def test_a_cache_that_the_recording_filled_is_named_as_the_cause(
    tape: Path, folder: Path, provider: ProviderServer, http: httpx2.Client, database: bool
) -> None:
    """Its request is never asked for then. Without the cache the run replays."""
    cache = folder / "answers"

    def agent() -> None:
        ask_model(provider.url, http, cache, database=database)

    with record(tape):
        agent()
    with pytest.raises(DivergenceError, match="never asked for") as raised, replay(tape):
        agent()
    hints = "".join(raised.value.divergence.hints)
    assert "answers is read, which the recording itself wrote (test_files.py:" in hints
    cache.unlink()
    with replay(tape) as run:
        agent()
    assert run.differences == []
    with pytest.raises(DivergenceError) as raised, fork(tape, 0, "other"):
        agent()
    assert "answers is read, which the recording itself wrote" in str(raised.value)


def test_a_file_that_did_not_exist_is_named(tape: Path, folder: Path) -> None:
    """The recording looked for it."""

    def agent() -> None:
        with suppress(FileNotFoundError):
            (folder / "settings.json").read_text()

    with record(tape):
        agent()
    with replay(tape) as run:
        agent()
    assert run.differences == []
    (folder / "settings.json").write_text("{}")
    with pytest.warns(SurroundingsWarning, match="settings.json is read, and did not exist"):
        with replay(tape):
            agent()


def test_a_changed_module_is_named_where_the_run_diverged(
    tape: Path,
    folder: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is no difference by itself: a comment may have changed."""
    monkeypatch.syspath_prepend(str(folder))
    (folder / "my_prompts.py").write_text("PROMPT = 'be brief'\ndef plan(): ...\n")
    import my_prompts  # type: ignore[import-not-found]

    def agent(prompt: str) -> None:
        http.post(f"{provider.url}/echo", content=prompt.encode())

    with record(tape):
        agent(my_prompts.PROMPT)
    del sys.modules["my_prompts"]
    assert "my_prompts.py" in noted(tape, "source")
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent("be long")
    assert "my_prompts.py" not in str(raised.value)
    (folder / "my_prompts.py").write_text("PROMPT = 'be long'\n")
    with replay(tape) as run:
        agent("be brief")
    assert run.differences == []
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent("be long")
    assert "my_prompts.py was changed since this was recorded: plan() is gone" in str(raised.value)


def test_files_of_python_packages_and_the_system_are_not_noted(
    tape: Path, folder: Path, elder: Callable[[Callable[[], Any]], Any]
) -> None:
    """Nor are those that other work of the process reads."""
    with record(tape):
        Path(json.__file__).read_text()
        Path(httpx2.__file__).read_text()
        Path("/proc/self/stat").read_text()
        elder((folder / "notes.txt").read_text)
    assert noted(tape, "read") == {}
    assert noted(tape, "written") == {}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="Linux keeps files in memory there")
def test_a_file_in_memory_is_noted(tape: Path) -> None:
    """It lies among the devices of the system, whose files are not noted, and is the user's own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        notes = Path(place, "notes.txt")
        notes.write_text(NOTES)
        with record(tape):
            notes.read_text()
            Path("/dev/null").read_text()
        assert list(noted(tape, "read")) == [str(notes)]


def test_a_temporary_file_that_is_gone_is_not_noted(tape: Path) -> None:
    """What is left behind is."""
    with record(tape):
        with tempfile.NamedTemporaryFile() as gone:
            gone.write(b"x")
        with tempfile.NamedTemporaryFile(delete=False) as left:
            left.write(b"xyz")
    Path(left.name).unlink()
    assert {path: file.size for path, file in noted(tape, "written").items()} == {left.name: 3}


def test_a_file_noted_on_a_hostile_tape_is_one_clear_error(
    tape: Path, folder: Path, alter: Alter
) -> None:
    """A path that is a number."""
    with record(tape):
        (folder / "notes.txt").read_text()
    alter(tape, events=lambda line: line.replace(b'"path":"notes.txt"', b'"path":7'))
    with pytest.raises(TapeError, match="corrupt"), replay(tape):
        pass
