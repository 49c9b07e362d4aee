"""An imported run lies on a tape like a recorded one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Failure, Head, Request
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, ForeignStep
from tracefork_core.interop.importing.recording import write
from tracefork_core.tape import Tape
from tracefork_core.tape.held import MOST
from tracefork_core.tape.imported import Grade

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
BEGAN = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
ASKED = b'{"model":"gpt-5-mini","messages":[{"role":"user","content":"%b"}]}'
ANSWERED = b'{"choices":[{"message":{"role":"assistant","content":"Hello."}}]}'


def chat(text: bytes, step: str | None = None, grade: Grade = "proven") -> ForeignExchange:
    """Return a chat completion that a file holds."""
    headers = (("Authorization", f"Bearer {KEY}"), ("Content-Type", "application/json"))
    url = "https://api.openai.com/v1/chat/completions"
    return ForeignExchange(
        Request("POST", url, headers, ASKED % text, "import"),
        Head(200, "OK", (("Content-Type", "application/json"),)),
        (ANSWERED[:20], ANSWERED[20:]),
        started=BEGAN,
        first_byte=SECOND,
        took=2 * SECOND,
        step=step,
        grade=grade,
    )


def test_bodies_times_and_steps_are_those_of_the_file(tmp_path: Path) -> None:
    """Even a step that stands before its parent finds it."""
    steps = [
        ForeignStep("b", "node", "ask", "a", BEGAN, BEGAN + SECOND),
        ForeignStep("a", "agent", "desk", None, BEGAN, BEGAN + 3 * SECOND, "ValueError"),
    ]
    run = ForeignRun("a format", [chat(b"Hello?", step="b")], steps)
    receipt = write(run, Path("old.json"), b"{}", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        exchange = tape.exchanges[0]
        assert exchange.request_body == ASKED % b"Hello?"
        assert exchange.chunks == [ANSWERED[:20], ANSWERED[20:]]
        assert exchange.step_path == ("desk", "ask")
        assert exchange.aside.started == BEGAN
        assert (exchange.aside.first_byte, exchange.aside.took) == (SECOND, 2 * SECOND)
        assert [(step.name, step.error) for step in exchange.steps] == [
            ("desk", "ValueError"),
            ("ask", None),
        ]
    assert receipt.took == 3 * SECOND


def test_the_tape_says_what_the_lowest_grade_is_and_where(tmp_path: Path) -> None:
    """One call without its request makes the whole run unproven."""
    run = ForeignRun("a format", [chat(b"1"), chat(b"2", grade="unproven")])
    write(run, Path("old.json"), b"{}", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        origin = tape.imported
    assert origin is not None
    assert (origin.format, origin.file, origin.grade) == ("a format", "old.json", "unproven")
    assert origin.lower == {"unproven": [1]}
    assert origin.replays


def test_a_run_without_a_call_has_the_lowest_grade() -> None:
    """A file of which nothing was read claims nothing."""
    assert ForeignRun("a format").grade == "structure"


def test_keys_in_the_file_do_not_reach_the_tape(tmp_path: Path) -> None:
    """The same masking as in a recording: a key in a header, and one in a body."""
    run = ForeignRun("a format", [chat(b"my key is " + KEY.encode())])
    write(run, Path("old.json"), b"{}", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        exchange = tape.exchanges[0]
        recorded = repr(exchange.request_headers).encode() + exchange.request_body
    assert KEY.encode() not in recorded
    assert KEY.encode() not in (tmp_path / "new.tape").read_bytes()
    assert b"my key is " in recorded


def test_a_failed_call_is_a_failure_on_the_tape(tmp_path: Path) -> None:
    """It has no response, and the message is the file's."""
    failed = ForeignExchange(
        Request("POST", "trace://openai/chat", (), b"{}", "import"),
        failure=Failure("timeout", "took too long"),
    )
    write(ForeignRun("a format", [failed]), Path("old.json"), b"{}", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        failure = tape.exchanges[0].failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("timeout", "took too long")


def test_steps_in_a_circle_do_not_hang(tmp_path: Path) -> None:
    """A hostile file may say that each of two steps is the other's parent."""
    steps = [ForeignStep("a", "node", "a", "b"), ForeignStep("b", "node", "b", "a")]
    write(ForeignRun("x", [chat(b"1", "a")], steps), Path("o"), b"", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        assert sorted(tape.exchanges[0].step_path) == ["a", "b"]


def test_a_run_may_be_larger_than_what_a_service_holds(tmp_path: Path) -> None:
    """A file with images has bodies of many megabytes."""
    large = chat(b"1")
    large.chunks = (Random(0).randbytes(MOST + 1),)
    write(ForeignRun("a format", [large]), Path("o"), b"", tmp_path / "new.tape")
    with Tape.open(tmp_path / "new.tape") as tape:
        assert len(tape.exchanges[0].response_body) == MOST + 1


def test_a_taken_name_is_refused_and_the_file_there_is_kept(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    target = tmp_path / "new.tape"
    target.write_bytes(b"mine")
    with pytest.raises(UsageError, match="already exists"):
        write(ForeignRun("a format", [chat(b"1")]), Path("old.json"), b"{}", target)
    assert target.read_bytes() == b"mine"
