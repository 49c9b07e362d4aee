"""What a tool changes besides returning a result is on the tape, and a replay changes it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import ToolError, record, replay
from tracefork_core.adapters import Changes, FrameworkValues, atool_exchange, recorded_tool

ran: list[str | None] = []


class PausedError(Exception):
    """An exception of the framework that its message alone does not rebuild."""

    def __init__(self, until: int) -> None:
        self.until = until
        super().__init__(until)


class Values(FrameworkValues):
    """Converts that exception."""

    tag = "acme"

    def fields(self, value: object) -> dict[str, Any] | None:
        return {"until": value.until} if isinstance(value, PausedError) else None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return PausedError(**fields)


class OfState(Changes):
    """Notes what a call writes to the state of its run."""

    def __init__(self, state: dict[str, object]) -> None:
        self._state = state

    @contextmanager
    def noted(self) -> Iterator[None]:
        self._before = dict(self._state)
        yield

    async def made(self) -> object:
        return {key: it for key, it in self._state.items() if self._before.get(key) != it}

    async def make_again(self, made: Any) -> None:
        self._state.update(made)


class SeatError(Exception):
    """An exception of the program."""


async def book(state: dict[str, object], fail: Exception | None, seat: str | None) -> object:
    """Call a tool that writes a seat to the state, and fails."""

    async def run(flight: str) -> str:
        ran.append(recorded_tool())
        if seat is not None:
            state["seat"] = seat
        if fail is not None:
            raise fail
        return f"{flight}: booked"

    told = {"flight": "LH1"}
    return await atool_exchange("book a seat", told, run, Values(), changes=OfState(state))


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


async def test_a_replay_makes_the_changes_of_a_tool_again(tape: Path) -> None:
    """The tool itself runs once; outside a session nothing is noted."""
    for session in (record, replay):
        state: dict[str, object] = {"name": "Ada"}
        with session(tape):
            assert await book(state, None, "12A") == "LH1: booked"
        assert state == {"name": "Ada", "seat": "12A"}
    assert ran == ["book a seat"]
    assert await book({}, None, None) == "LH1: booked"
    assert ran[1:] == [None]


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError("full"), ValueError("full")),
        (SeatError("full"), ToolError("SeatError", "full")),
        (PausedError(7), PausedError(7)),
    ],
    ids=["builtin", "unknown", "of the framework"],
)
@pytest.mark.parametrize("seat", ["12A", None], ids=["after a change", "without one"])
async def test_a_tool_that_fails_fails_alike_in_a_replay(
    tape: Path, error: Exception, seen: Exception, seat: str | None
) -> None:
    """What it changed before is changed again, and the exception has its data."""
    for session in (record, replay):
        state: dict[str, object] = {}
        with session(tape), pytest.raises(type(seen)) as raised:
            await book(state, error, seat)
        assert raised.value.args == seen.args
        assert vars(raised.value).items() >= vars(seen).items()
        assert state == ({} if seat is None else {"seat": seat})
    assert len(ran) == 1
