"""A framework's tool is an exchange by its name and arguments, with classes of the framework's."""

from __future__ import annotations

import json
import math
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
    tool_exchange,
    tool_mark,
)

ran: list[str] = []


class Note:
    """A class of a framework's."""

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
    """Ask by arguments that no function of Python could have."""
    note = tool_exchange("look_up", {"order-number": number, "self": "me"}, look_up, Notes())
    assert isinstance(note, Note)
    return note.text


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def test_it_runs_once(tape: Path) -> None:
    """It runs outside of a session and when it is recorded, and is given at replay."""
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
    """The control: the argument is named."""
    with record(tape):
        ask(17)
    with pytest.raises(DivergenceError, match=r"/order-number\n.*17\n.*18"), replay(tape):
        ask(18)


async def test_it_is_awaited(tape: Path) -> None:
    """The async one does the same, and has none of its own inside of another tool."""

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


def test_a_fork_changes_arguments_and_results(tape: Path) -> None:
    """What a fork gives is meant as a note, or refused."""
    with record(tape):
        ask(17)

    def forked(change: Any, name: str) -> str:
        with fork(tape, 0, change, writes="allow", to=tape.with_name(name)):
            return ask(17)

    assert forked(Edit(values={"/order-number": 18}), "edited") == "18: lost"
    assert forked(Replace(document={"note": "found"}), "replaced") == "found"
    with pytest.raises(ReplayError, match="no note"):
        forked(Replace(document={"letter": "found"}), "refused")


def test_what_does_not_come_back_is_refused(tape: Path) -> None:
    """A result that is told otherwise the second time could not be given again."""

    class Forgetful(Notes):
        def decode(self, value: object) -> object:
            return Note("")

    with record(tape), pytest.raises(UsageError, match="look_up has run, but a replay could not"):
        tool_exchange("look_up", {"order-number": 17}, look_up, Forgetful())


@dataclass(eq=False)
class Reading:
    """Equal to no other, as its value is."""

    value: float


def measure() -> Reading:
    ran.append("measured")
    return Reading(math.nan)


def test_what_does_not_equal_itself_comes_back(tape: Path) -> None:
    """No number, and an object without an equality: they are compared as a tape holds them."""
    for session in (record, replay):
        with session(tape):
            found = tool_exchange("measure", {}, measure, Notes())
        assert isinstance(found, Reading)
        assert math.isnan(found.value)
    assert ran == ["measured"]


def test_a_mark_is_read() -> None:
    """What `@tool` says of a function is there for an adapter; a plain function has no mark."""

    @tool(effect="write", raises=(KeyboardError,))
    def refund() -> None: ...

    assert tool_mark(refund) == ToolMark("write", (KeyboardError,))
    assert tool_mark(look_up) is None


class KeyboardError(Exception):
    """One of the tool's own."""
