"""A tool of a framework is recorded by its name and arguments, with the framework's classes."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import (
    DivergenceError,
    Edit,
    Replace,
    ReplayError,
    Tape,
    UsageError,
    fork,
    record,
    replay,
    tool,
)
from tracefork_core.adapters import (
    FrameworkValues,
    ToolMark,
    atool_exchange,
    atool_stream,
    tool_exchange,
    tool_mark,
)

ran: list[str] = []


class Note:
    """A class of the framework."""

    def __init__(self, text: str) -> None:
        self.text = text


class Notes(FrameworkValues):
    """Converts notes to their text."""

    def encode(self, value: object) -> object:
        return {"note": value.text} if isinstance(value, Note) else value

    def decode(self, value: object) -> object:
        if not isinstance(value, dict):
            return value
        if value.keys() != {"note"}:
            raise ReplayError(f"no note: {value}")
        return Note(value["note"])


def look_up(**told: Any) -> Note:
    ran.append(str(told))
    return Note(f"{told['order-number']}: lost")


def ask(number: int) -> str:
    """Pass arguments that no Python function could have."""
    note = tool_exchange("look_up", {"order-number": number, "self": "me"}, look_up, Notes())
    assert isinstance(note, Note)
    return note.text


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def test_a_framework_tool_does_not_run_at_replay(tape: Path) -> None:
    """It runs outside a session and while recording."""
    assert ask(17) == "17: lost"
    with record(tape):
        assert ask(17) == "17: lost"
    with replay(tape):
        assert ask(17) == "17: lost"
    assert len(ran) == 2
    with Tape.open(tape) as opened:
        (one,) = opened.exchanges
        assert (one.method, one.url) == ("CALL", "tool:look_up")
        assert json.loads(one.request_body) == {"order-number": 17, "self": "me"}


def test_another_argument_diverges(tape: Path) -> None:
    """Negative control: the divergence names the argument."""
    with record(tape):
        ask(17)
    with pytest.raises(DivergenceError) as raised, replay(tape):
        ask(18)
    divergence = raised.value.divergence
    assert divergence.pointer == "/order-number"
    assert (divergence.recorded, divergence.actual) == ("17", "18")


async def test_an_async_framework_tool_replays(tape: Path) -> None:
    """Inside another tool it is part of that exchange."""

    async def look_up_later(number: int) -> Note:
        return Note(ask(number))

    for session in (record, replay):
        with session(tape):
            note = await atool_exchange("later", {"number": 17}, look_up_later, Notes())
            assert isinstance(note, Note)
            assert note.text == "17: lost"
    assert len(ran) == 1
    with Tape.open(tape) as opened:
        assert [one.url for one in opened.exchanges] == ["tool:later"]


async def test_a_framework_tool_that_yields_replays(tape: Path) -> None:
    """Each value is converted and delivered by itself, and the tool has run once."""

    async def look_up_slowly(number: int) -> AsyncGenerator[Note, None]:
        for _ in range(2):
            yield Note(ask(number))

    for session in (record, replay):
        with session(tape):
            values = atool_stream("slowly", {"number": 17}, look_up_slowly, Notes())
            notes = [note async for note in values]
            assert [note.text for note in notes] == ["17: lost"] * 2
    assert len(ran) == 2
    with Tape.open(tape) as opened:
        assert [(one.url, len(one.chunks)) for one in opened.exchanges] == [("tool:slowly", 2)]


def test_a_fork_changes_arguments_and_results(tape: Path) -> None:
    """A result from a fork is decoded as a note, or refused."""
    with record(tape):
        ask(17)

    def forked(change: Any, name: str) -> str:
        with fork(tape, 0, change, writes="allow", to=tape.with_name(name)):
            return ask(17)

    assert forked(Edit(values={"/order-number": 18}), "edited") == "18: lost"
    assert forked(Replace(document={"note": "found"}), "replaced") == "found"
    with pytest.raises(ReplayError, match="no note"):
        forked(Replace(document={"letter": "found"}), "refused")


def test_a_result_that_cannot_be_rebuilt_is_refused(tape: Path) -> None:
    """Here the encoding differs the second time."""

    class Forgetful(Notes):
        def decode(self, value: object) -> object:
            return Note("")

    with record(tape), pytest.raises(UsageError, match="look_up"):
        tool_exchange("look_up", {"order-number": 17}, look_up, Forgetful())


@dataclass(eq=False)
class Reading:
    """An object that equals no other, as its value does."""

    value: float


def measure() -> Reading:
    ran.append("measured")
    return Reading(math.nan)


def test_values_that_do_not_equal_themselves_replay(tape: Path) -> None:
    """nan, and an object without equality, are compared by their bytes on the tape."""
    for session in (record, replay):
        with session(tape):
            found = tool_exchange("measure", {}, measure, Notes())
        assert isinstance(found, Reading)
        assert math.isnan(found.value)
    assert ran == ["measured"]


def test_an_adapter_reads_the_options_of_tool() -> None:
    """`tool_mark` returns None for a plain function."""

    @tool(effect="write", raises=(KeyboardError,))
    def refund() -> None: ...

    assert tool_mark(refund) == ToolMark("write", (KeyboardError,))
    assert tool_mark(look_up) is None


class KeyboardError(Exception):
    """An exception of the tool."""
