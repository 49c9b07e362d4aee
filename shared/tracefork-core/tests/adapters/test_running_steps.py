"""Work in pieces is a step: what it asks belongs to it, and what its reader asks does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import (
    BlockIn,
    RunningStep,
    checked_events,
    current_step,
    events_in,
    own_branches,
    step,
    take_lane,
)
from tracefork_core.tape import StepRecord

_said: ContextVar[str] = ContextVar("said", default="nothing")


def _steps(tape: Path) -> list[StepRecord]:
    with tracefork.Tape.open(tape) as opened:
        return list(opened.steps)


async def _agent(seen: list[object]) -> AsyncGenerator[int, None]:
    try:
        for number in range(3):
            seen.append((current_step.get(), _said.get()))
            yield number
    finally:
        seen.append(("closed", current_step.get()))


def test_only_the_generator_sees_its_step(tape: Path) -> None:
    """What the reader asks between two items is not the agent's."""

    async def read(seen: list[object], outside: list[object]) -> str | None:
        running = RunningStep.begin("agent", "writer", {_said: "hello"})
        async with aclosing(events_in(running, _agent(seen))) as events:
            outside += [(current_step.get(), _said.get()) async for _ in events]
        return running.step

    seen: list[object] = []
    outside: list[object] = []
    with tracefork.record(tape):
        step = asyncio.run(read(seen, outside))
    assert step is not None
    assert seen == [(step, "hello")] * 3 + [("closed", step)]
    assert outside == [(None, "nothing")] * 3
    [recorded] = _steps(tape)
    assert (recorded.kind, recorded.name, recorded.error) == ("agent", "writer", None)


def test_each_item_may_be_asked_for_in_a_context_of_its_own(tape: Path) -> None:
    """Frameworks make a task of each item, to cancel it; a task has a copy of the context."""

    async def read(seen: list[object]) -> list[int]:
        inside = events_in(lambda: RunningStep.begin("agent", "writer"), _agent(seen))
        items = [await asyncio.ensure_future(anext(inside)) for _ in range(2)]
        await asyncio.ensure_future(inside.aclose())
        return items

    seen: list[object] = []
    with tracefork.record(tape):
        assert asyncio.run(read(seen)) == [0, 1]
    assert len(seen) == 3, "the reader stopped, and the generator was closed"
    [recorded] = _steps(tape)
    assert recorded.error is None, "a reader that stops is no error of the agent"


def test_an_exception_ends_the_step_with_it_and_an_inner_one_too(tape: Path) -> None:
    """An agent in its second turn fails: both steps did."""

    async def fail(running: RunningStep) -> AsyncGenerator[int, None]:
        yield 1
        inner = RunningStep.begin("turn", "turn 2")
        running.current = inner.step
        raise ValueError("no")

    async def read() -> None:
        running = RunningStep.begin("agent", "writer")
        async for _ in events_in(running, fail(running)):
            pass

    with tracefork.record(tape), pytest.raises(ValueError, match="no"):
        asyncio.run(read())
    steps = _steps(tape)
    assert {(it.name, it.error) for it in steps} == {
        ("writer", "ValueError('no')"),
        ("turn 2", "ValueError('no')"),
    }


@asynccontextmanager
async def _connected(seen: list[object]) -> AsyncGenerator[str, None]:
    seen.append(current_step.get())
    try:
        yield "connected"
    finally:
        seen.append(current_step.get())


@pytest.mark.parametrize("error", [None, ValueError("no")], ids=["it ends", "it fails"])
def test_the_body_of_a_context_manager_does_not_see_its_step(
    tape: Path, error: Exception | None
) -> None:
    """The step is current while the manager is entered and left, and has the error of the body."""

    async def use(seen: list[object]) -> None:
        block = BlockIn(lambda: RunningStep.begin("agent", "writer"), _connected(seen))
        async with block as entered:
            seen.append((entered, current_step.get()))
            if error is not None:
                raise error

    seen: list[object] = []
    with tracefork.record(tape), suppress(ValueError):
        asyncio.run(use(seen))
    [recorded] = _steps(tape)
    assert seen == [recorded.id, ("connected", None), recorded.id]
    assert recorded.error == (None if error is None else "ValueError('no')")


def test_branches_have_lanes_of_their_names(tape: Path) -> None:
    """Each is numbered in the step around, in whatever order they ask."""

    async def ask(name: str, pause: float) -> None:
        take_lane(name)
        await asyncio.sleep(pause)
        with step("tool", "clock"):
            await tracefork.tool(_look_up)(name)

    async def team() -> None:
        with step("agent", "planner", own_branches()):
            pauses = {"writer": 0.02, "reader": 0.0}
            asks = [ask(name, pause) for name, pause in pauses.items() for _ in range(2)]
            await asyncio.gather(*asks)

    with tracefork.record(tape):
        asyncio.run(team())
    with tracefork.Tape.open(tape) as opened:
        lanes = sorted(it.lane.rpartition("/")[2] for it in opened.exchanges)
    assert [lane.partition(".")[2] for lane in lanes] == [
        *("reader.1", "reader.2"),
        *("writer.1", "writer.2"),
    ]


async def _look_up(name: str) -> str:
    return name


def test_a_failed_session_ends_events_in_its_error(tape: Path) -> None:
    """An agent that answers an error with an event answers a divergence, too."""
    with tracefork.record(tape):
        pass

    async def answer() -> AsyncGenerator[str, None]:
        with suppress(tracefork.DivergenceError):
            await tracefork.tool(_look_up)("writer")
        yield "sorry"

    async def read() -> list[str]:
        return [event async for event in checked_events(answer())]

    replaying, raised = tracefork.replay(tape), pytest.raises(tracefork.DivergenceError)
    with pytest.raises(tracefork.DivergenceError), replaying, raised:
        asyncio.run(read())
