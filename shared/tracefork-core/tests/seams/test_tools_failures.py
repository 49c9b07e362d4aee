"""A tool raises the same in the recording and in the replay."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import (
    EgressError,
    ReplayError,
    Tape,
    ToolError,
    UsageError,
    record,
    replay,
    tool,
)


@dataclass
class Weather:
    """A result of a tool."""

    sky: str


class SoldOutError(Exception):
    """An exception of the agent."""


class VerySoldOutError(SoldOutError):
    """An exception derived from it."""


class PickyError(Exception):
    """An exception that cannot be built from a message alone."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class ConnectionError(Exception):  # noqa: A001 - as requests has one
    """An exception that only looks like a builtin."""


def odd_key() -> Exception:
    return KeyError("it's", 3)


def noted() -> Exception:
    error = ValueError("with more to it")
    error.code = 7  # type: ignore[attr-defined]
    return error


CASES: list[tuple[Callable[[], BaseException], type[Exception], str]] = [
    (lambda: ValueError("no such thing"), ValueError, "no such thing"),
    (lambda: KeyError("it's"), KeyError, '"it\'s"'),
    (odd_key, KeyError, ", 3)"),
    (noted, ValueError, "with more to it"),
    (TimeoutError, TimeoutError, ""),
    (lambda: FileNotFoundError(2, "gone", "a.txt"), FileNotFoundError, "[Errno 2] gone: 'a.txt'"),
    (lambda: SoldOutError("tea"), SoldOutError, "tea"),
    (lambda: VerySoldOutError("tea"), SoldOutError, "tea"),
    (lambda: PickyError(4, "no"), ToolError, "PickyError: no"),
    (lambda: json.JSONDecodeError("bad", "x", 0), ToolError, "JSONDecodeError: bad: line 1"),
    (lambda: ConnectionError("reset"), ToolError, "ConnectionError: reset"),
    (lambda: ExceptionGroup("two", [ValueError("a")]), ToolError, "ExceptionGroup: two"),
    (lambda: ValueError("\ud800 half"), ValueError, "\\ud800 half"),
]


@pytest.mark.parametrize(("make", "kind", "words"), CASES)
@pytest.mark.parametrize("is_async", [False, True])
def test_both_runs_raise_the_same_exception(
    make: Callable[[], Exception], kind: type[Exception], words: str, is_async: bool, tape: Path
) -> None:
    """Builtin and listed classes keep their class; others become a ToolError."""
    runs: list[int] = []

    def fails() -> None:
        runs.append(1)
        raise make()

    async def fails_later() -> None:
        await asyncio.sleep(0)
        fails()

    raises = (SoldOutError, PickyError)
    sync, later = tool(raises=raises)(fails), tool(raises=raises)(fails_later)

    def seen() -> tuple[type[Exception], str, str]:
        try:
            asyncio.run(later()) if is_async else sync()
        except Exception as error:
            return type(error), str(error), repr((error.args, vars(error)))
        raise AssertionError("it did not fail")

    with record(tape):
        recorded = seen()
    with replay(tape):
        assert seen() == recorded
    assert recorded[0] is kind
    assert words in recorded[1]
    assert len(runs) == 1


def test_a_tool_error_says_how_to_keep_the_class(tape: Path) -> None:
    """It has the name and the message, a note with the remedy, and the cause if known."""

    @tool
    def fails() -> None:
        raise PickyError(4, "no")

    for session, cause in ((record(tape), PickyError), (replay(tape), type(None))):
        with session:
            with pytest.raises(ToolError) as caught:
                fails()
        assert (caught.value.kind, caught.value.message) == ("PickyError", "no")
        assert "@tool(raises=(PickyError,))" in caught.value.__notes__[0]
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.kind, again.message) == ("PickyError", "no")
        assert type(caught.value.__cause__) is cause


def test_a_tape_holds_the_name_and_the_message_of_a_failure(tape: Path) -> None:
    """As for any failed exchange."""

    @tool
    def fails() -> None:
        raise LookupError("nothing there")

    with record(tape):
        with pytest.raises(LookupError):
            fails()
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert exchange.failure is not None
        assert (exchange.failure.kind, exchange.failure.message) == ("LookupError", "nothing there")
        assert (exchange.end, exchange.status) == ("failed", None)


def test_an_error_of_tracefork_inside_a_tool_is_not_a_failure_of_the_tool(tape: Path) -> None:
    """It is raised unchanged, and no failure is recorded."""

    @tool
    def connects() -> None:
        socket.getaddrinfo("example.invalid", 80)

    with pytest.raises(EgressError), record(tape, offline=True):
        with pytest.raises(EgressError):
            connects()
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert (exchange.failure, exchange.end) == (None, "cancelled")


def test_a_timeout_of_the_agent_on_a_tool_replays(tape: Path) -> None:
    """At replay nothing runs, and the timeout passes all the same."""
    runs: list[int] = []

    @tool
    async def never() -> None:
        runs.append(1)
        await asyncio.Event().wait()

    async def agent() -> str:
        try:
            await asyncio.wait_for(never(), 0.05)
        except TimeoutError:
            return "gave up"
        return "got it"

    with record(tape):
        assert asyncio.run(agent()) == "gave up"
    with replay(tape):
        assert asyncio.run(agent()) == "gave up"
    assert len(runs) == 1


def test_a_result_that_cannot_be_rebuilt_is_an_error_in_both_runs(tape: Path) -> None:
    """The tool has run; the replay raises the same and does not run it."""
    runs: list[int] = []

    @tool
    def handle() -> Any:
        runs.append(1)
        return {"open": [object()]}

    messages = []
    for session in (record(tape), replay(tape)):
        with session:
            with pytest.raises(UsageError) as caught:
                handle()
            messages.append(str(caught.value))
    assert "builtins.object (at /open/0)" in messages[0]
    assert messages[0] == messages[1]
    assert len(runs) == 1


def test_a_recorded_result_that_no_longer_fits_the_annotation_is_refused(tape: Path) -> None:
    """The recorded object is not of the class that the function returns now."""

    @tool(name="weather")
    def then() -> Weather:
        return Weather("rain")

    @tool(name="weather")
    def now() -> int:
        raise AssertionError("it does not run")

    with record(tape):
        assert then() == Weather("rain")
    with replay(tape):
        with pytest.raises(ReplayError):
            now()
