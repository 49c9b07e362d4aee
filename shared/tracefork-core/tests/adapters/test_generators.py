"""A generator is a step: the requests that it makes belong to it, and the reader's do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import RunningStep, current_step, events_in
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
        running = RunningStep.begin("agent", "writer")
        async with aclosing(events_in(running, _agent(seen), {_said: "hello"})) as events:
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
        inside = events_in(RunningStep.begin("agent", "writer"), _agent(seen))
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
