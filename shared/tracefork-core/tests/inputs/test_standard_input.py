"""What a session reads from standard input is on its tape, and is given again at replay."""

from __future__ import annotations

import asyncio
import getpass
import io
import os
import sys
import warnings
from collections.abc import Callable
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
from tracefork_testkit import ProviderServer

from ..conftest import Alter

LINES = b"ann\nb\xc3\xb6b\nlast"
KEY = "sk-proj-9fK2mQ7xLw3ZrT8vB1nC"
READS: dict[str, Callable[[], object]] = {
    "input": lambda: [input("? ") for _ in range(3)],
    "readline": lambda: [sys.stdin.readline() for _ in range(4)],
    "pieces": lambda: [sys.stdin.read(5), sys.stdin.readline(2), sys.stdin.read()],
    "read": lambda: (sys.stdin.read(), sys.stdin.read()),
    "loop": lambda: list(sys.stdin),
    "readlines": lambda: [*sys.stdin.readlines(8), *sys.stdin.readlines()],
    "bytes": lambda: [sys.stdin.buffer.read(size) for size in (4, -1)],
    "lines of bytes": lambda: list(sys.stdin.buffer),
    "into a buffer": lambda: _buffer().readinto(bytearray(6)),
    "what is there": lambda: [_buffer().read1() for _ in range(2)],
    "thread": lambda: asyncio.run(_in_thread()),
}


def _buffer() -> Any:
    return sys.stdin.buffer


async def _in_thread() -> list[str]:
    return [await asyncio.to_thread(input) for _ in range(2)]


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets what standard input holds."""

    def types(data: bytes, *, terminal: bool = False) -> None:
        kind = _Terminal if terminal else io.TextIOWrapper
        monkeypatch.setattr(sys, "stdin", kind(io.BytesIO(data), encoding="utf-8"))

    return types


@pytest.fixture
def asks_secretly(monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Return a function that calls getpass where no terminal is: it reads standard input."""

    def no_terminal(path: Any, *args: Any, **kwargs: Any) -> int:
        if path == "/dev/tty":
            raise OSError("no terminal")
        return real_open(path, *args, **kwargs)

    def ask() -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", getpass.GetPassWarning)
            return getpass.getpass("password: ")

    real_open = os.open
    monkeypatch.setattr(os, "open", no_terminal)
    return ask


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_replay_reads_what_the_recording_read(
    tape: Path, types: Callable[..., None], read: Callable[[], object]
) -> None:
    """Its own standard input is empty."""
    types(LINES)
    with record(tape):
        expected = read()
    types(b"")
    with replay(tape) as run:
        assert read() == expected
    assert run.differences == []
    types(LINES)
    assert read() == expected, "outside of a session, standard input is the real one"


def test_bytes_that_are_no_text_are_given_again(tape: Path, types: Callable[..., None]) -> None:
    """An image, say."""
    data = bytes(range(256)) * 3
    types(data)
    with record(tape):
        assert sys.stdin.buffer.read() == data
    types(b"")
    with replay(tape):
        assert sys.stdin.buffer.read() == data


def test_a_read_beyond_the_recording_gets_the_end_and_is_reported(
    tape: Path, types: Callable[..., None], provider: ProviderServer, http: httpx2.Client
) -> None:
    """With the line that reads, on the card too."""

    def agent(reads: int) -> None:
        words = [sys.stdin.readline() for _ in range(reads)]
        http.post(f"{provider.url}/echo", content="".join(words).encode())

    types(LINES)
    with record(tape):
        agent(1)
    types(LINES)
    with pytest.warns(SurroundingsWarning, match="standard input"), replay(tape) as run:
        agent(2)
    (difference,) = run.differences
    assert "test_standard_input.py:" in difference
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(f"{provider.url}/echo", content=input().encode() + input_or_end().encode())
    assert "standard input" in str(raised.value)


def input_or_end() -> str:
    """Return a line, or a word for the end of the input."""
    try:
        return input()
    except EOFError:
        return "the end"


def test_code_outside_the_session_reads_the_real_standard_input(
    tape: Path, types: Callable[..., None], elder: Callable[[Callable[[], Any]], Any]
) -> None:
    """Nothing of it is on the tape."""
    types(LINES)
    with record(tape):
        assert elder(input) == "ann"
        assert input() == "böb"
    with Tape.open(tape) as opened:
        (event,) = opened.standard_input
    assert [read.text for read in event.reads] == ["böb\n"]


def test_a_secret_that_is_typed_is_masked(
    tape: Path,
    types: Callable[..., None],
    written: Callable[[Path], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the environment has it, or if it looks like one; other text is not."""
    monkeypatch.setenv("MY_SERVICE_TOKEN", "correct-horse-battery-1")
    types(f"{KEY}\ncorrect-horse-battery-1\nplain words\n".encode())
    with record(tape):
        list(sys.stdin)
    held = written(tape)
    assert KEY.encode() not in held
    assert b"correct-horse" not in held
    assert b"plain words" in held


def test_what_getpass_returns_is_on_no_tape_and_never_asked_for_at_replay(
    tape: Path,
    types: Callable[..., None],
    written: Callable[[Path], bytes],
    provider: ProviderServer,
    http: httpx2.Client,
    asks_secretly: Callable[[], str],
) -> None:
    """A request that holds it replays: it is a secret like any other."""

    def agent() -> str:
        word = asks_secretly()
        http.post(f"{provider.url}/echo", content=f"open {word}".encode())
        return word

    types(b"Tr0ub4dor-and-3\n")
    with record(tape):
        assert agent() == "Tr0ub4dor-and-3"
    assert b"Tr0ub4dor" not in written(tape)
    with Tape.open(tape) as opened:
        assert opened.standard_input == []
    with replay(tape):
        assert agent() == "tracefork-secret-TYPED_PASSWORD"


def test_a_short_password_in_a_body_diverges(
    tape: Path,
    types: Callable[..., None],
    provider: ProviderServer,
    http: httpx2.Client,
    asks_secretly: Callable[[], str],
) -> None:
    """It is too short to be masked; see the limits."""

    def agent() -> None:
        http.post(f"{provider.url}/echo", content=f"open {asks_secretly()}".encode())

    types(b"1234\n")
    with record(tape):
        agent()
    with pytest.raises(DivergenceError), replay(tape):
        agent()


def test_reading_the_descriptor_itself_is_live(tape: Path) -> None:
    """A replay reads what is there then; see the limits."""

    def agent() -> bytes:
        ours, theirs = os.pipe()
        os.write(theirs, b"typed")
        os.close(theirs)
        before = os.dup(0)
        os.dup2(ours, 0)
        try:
            return os.read(0, 5)
        finally:
            os.dup2(before, 0)
            os.close(before)
            os.close(ours)

    with record(tape):
        assert agent() == b"typed"
    with Tape.open(tape) as opened:
        assert opened.standard_input == []
    with replay(tape):
        assert agent() == b"typed"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_fork_reads_the_tape_up_to_its_point(
    tape: Path,
    types: Callable[..., None],
    provider: ProviderServer,
    http: httpx2.Client,
    terminal: bool,
) -> None:
    """Past it, a terminal is asked; without one, the recorded input goes on."""
    said = []

    def agent() -> None:
        for _ in range(3):
            said.append(word := input())
            http.post(f"{provider.url}/echo", content=word.encode())

    types(b"one\ntwo\nthree\n")
    with record(tape):
        agent()
    types(b"other\n", terminal=terminal)
    said.clear()
    with fork(tape, 1, writes="allow") as forked:
        agent()
    expected = ["one", "two", "other" if terminal else "three"]
    assert said == expected
    types(b"")
    said.clear()
    with replay(forked.path):
        agent()
    assert said == expected, "the branch has its own input"


def test_whether_it_is_a_terminal_is_given_again(tape: Path, types: Callable[..., None]) -> None:
    """Agents read a pipe whole, and ask on a terminal."""

    def agent() -> str:
        return "asked" if sys.stdin.isatty() else sys.stdin.read()

    types(b"piped")
    with record(tape):
        assert agent() == "piped"
    types(b"", terminal=True)
    assert agent() == "asked"
    with replay(tape):
        assert agent() == "piped"


@pytest.mark.parametrize("options", [{"mode": "metadata"}, {"ambient": False}])
def test_standard_input_is_on_no_tape_that_keeps_none(
    tape: Path, types: Callable[..., None], written: Callable[[Path], bytes], options: Any
) -> None:
    """Neither its text nor that there was any."""
    types(LINES)
    with record(tape, **options):
        assert input() == "ann"
    with Tape.open(tape) as opened:
        assert opened.standard_input == []
    assert b'"input"' not in written(tape)


def test_a_hostile_read_is_one_clear_error(
    tape: Path, types: Callable[..., None], alter: Alter
) -> None:
    """A text that is a number."""
    types(LINES)
    with record(tape):
        input()
    alter(tape, events=lambda line: line.replace(b'"text":"ann\\n"', b'"text":7'))
    with pytest.raises(TapeError, match="corrupt"), replay(tape):
        input()
