"""A tool that yields: each value is a delivery of its own, as far as the agent read."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, Tape, UsageError, record, replay, tool

ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@dataclass
class Hit:
    page: str
    score: float


@dataclass
class Total:
    hits: int


@tool(effect="read")
def hits(count: int) -> Generator[Hit, None, Total]:
    try:
        for n in range(count):
            ran.append(n)
            yield Hit(f"page {n}", n / 2)
    finally:
        ran.append("closed")
    return Total(count)


@tool
async def ahits(count: int, fail: bool = False) -> AsyncIterator[Hit]:
    try:
        for n in range(count):
            await asyncio.sleep(0)
            ran.append(n)
            yield Hit(f"page {n}", n / 2)
        if fail:
            raise LookupError("no more pages")
    finally:
        ran.append("closed")


def twice(path: Path, agent: Callable[[], Any]) -> Any:
    """Record and replay an agent, check that both return the same, and return that."""
    with record(path):
        recorded = agent()
    done = list(ran)
    with replay(path) as run:
        assert agent() == recorded
    assert ran == done, "a tool ran at replay"
    assert run.digest == run.tape.digest
    return recorded


def test_a_generator_replays_its_values_and_its_return_value(tape: Path) -> None:
    """Also the value of `yield from`; each is a chunk."""

    def agent() -> list[object]:
        def delegate() -> Generator[object, None, None]:
            yield (yield from hits(3))

        return list(delegate())

    said = twice(tape, agent)
    assert said == [Hit("page 0", 0), Hit("page 1", 0.5), Hit("page 2", 1), Total(3)]
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert exchange.aside.effect == "read"
        assert exchange.chunks == [
            b'{"$object":{"page":"page 0","score":0.0}}\n',
            b'{"$object":{"page":"page 1","score":0.5}}\n',
            b'{"$object":{"page":"page 2","score":1.0}}\n',
            b'{"$return":{"$object":{"hits":3}}}\n',
        ]


def test_an_async_generator_replays_its_values(tape: Path) -> None:
    """In a task, beside another that reads at the same time."""

    async def read(count: int) -> list[Hit]:
        return [hit async for hit in ahits(count)]

    async def agent() -> list[list[Hit]]:
        return list(await asyncio.gather(read(3), read(2)))

    said = twice(tape, lambda: asyncio.run(agent()))
    assert [len(found) for found in said] == [3, 2]


def test_values_are_delivered_as_they_are_yielded(tape: Path) -> None:
    """The first arrives before the second is made, and is on disk before that."""
    with record(tape):
        found = hits(2)
        next(found)
        assert ran == [0]
        flight = tape.with_name(tape.name + "-flight").read_bytes()
        assert b"page 0" in flight
        assert next(found).page == "page 1"
        found.close()


@pytest.mark.parametrize("read", [0, 1, 2])
def test_an_abandoned_generator_is_recorded_as_far_as_it_was_read(read: int, tape: Path) -> None:
    """It is closed at once while recording; the replay yields no more than was read."""

    def agent(count: int) -> list[Hit]:
        found = hits(5)
        taken = [next(found) for _ in range(count)]
        found.close()
        return taken

    assert len(twice(tape, lambda: agent(read))) == read
    assert ran == [*range(read), *(["closed"] if read else [])]
    with Tape.open(tape) as opened:
        assert [exchange.end for exchange in opened.exchanges] == ["abandoned"] * (read > 0)
    if read:
        with pytest.raises(DivergenceError, match="exchange 0"), replay(tape):
            agent(read + 1)


def test_after_a_divergence_generators_raise_it_again(tape: Path) -> None:
    """Sync and async, though the agent swallowed the error; neither runs."""

    async def aread() -> list[Hit]:
        return [hit async for hit in ahits(1)]

    def agent() -> None:
        asks: list[Callable[[], object]] = [
            lambda: list(hits(2)),
            lambda: list(hits(1)),
            lambda: asyncio.run(aread()),
        ]
        for ask in asks:
            with pytest.raises(DivergenceError):
                ask()

    with record(tape):
        list(hits(1))
    done = list(ran)
    with pytest.raises(DivergenceError), replay(tape):
        agent()
    assert ran == done == [0, "closed"]


def test_an_abandoned_async_generator_is_closed(tape: Path) -> None:
    """Its clean-up has run when `aclose` returns."""

    async def agent() -> list[Hit]:
        found = ahits(5)
        taken = [await anext(found), await anext(found)]
        await found.aclose()  # type: ignore[attr-defined]
        return taken

    assert len(twice(tape, lambda: asyncio.run(agent()))) == 2
    assert ran == [0, 1, "closed"]


def test_an_exception_of_a_generator_comes_after_its_values(tape: Path) -> None:
    """The values first, then the same exception."""

    async def agent() -> list[object]:
        seen: list[object] = []
        try:
            async for hit in ahits(2, fail=True):
                seen += [hit]
        except LookupError as error:
            seen.append(str(error))
        return seen

    said = twice(tape, lambda: asyncio.run(agent()))
    assert said == [Hit("page 0", 0), Hit("page 1", 0.5), "no more pages"]


def test_a_value_sent_into_a_tool_is_refused_in_both_runs(tape: Path) -> None:
    """It is not on the tape; outside a session it arrives."""

    @tool
    def echo() -> Generator[object, object, None]:
        sent = yield "ready"
        while True:
            sent = yield sent

    @tool
    async def aecho() -> AsyncIterator[object]:
        sent = yield "ready"
        while True:
            sent = yield sent

    async def asend() -> object:
        found: Any = aecho()
        try:
            return await anext(found), await found.asend("b")
        finally:
            await found.aclose()

    def send() -> object:
        found = echo()
        try:
            return next(found), found.send("a")
        finally:
            found.close()

    assert send() == ("ready", "a")
    assert asyncio.run(asend()) == ("ready", "b")
    for session in (record(tape), replay(tape)):
        with session:
            with pytest.raises(UsageError):
                send()
            with pytest.raises(UsageError):
                asyncio.run(asend())


def test_outside_a_session_a_generator_gets_thrown_exceptions() -> None:
    """Both kinds are plain generators there, also to `inspect`."""

    @tool
    def stubborn() -> Iterator[str]:
        try:
            yield "a"
        except KeyError:
            yield "caught"

    @tool
    async def astubborn() -> AsyncIterator[str]:
        try:
            yield "a"
        except KeyError:
            yield "caught"

    async def athrow() -> str:
        found: Any = astubborn()
        await anext(found)
        caught = await found.athrow(KeyError())
        assert [item async for item in found] == []
        return str(caught)

    found: Any = stubborn()
    assert (next(found), found.throw(KeyError())) == ("a", "caught")
    assert asyncio.run(athrow()) == "caught"
    assert inspect.isgeneratorfunction(stubborn)
    assert inspect.isasyncgenfunction(astubborn)


def test_an_exception_thrown_into_a_recorded_generator_ends_it(tape: Path) -> None:
    """The tool is closed, and the agent gets the exception, in both runs."""

    def agent() -> str:
        found = hits(3)
        next(found)
        try:
            found.throw(KeyError("stop"))
        except KeyError as error:
            return repr(error)
        return "went on"

    assert twice(tape, agent) == "KeyError('stop')"
    assert ran == [0, "closed"]


def test_a_value_that_cannot_be_rebuilt_ends_the_stream(tape: Path) -> None:
    """The values before it arrive, then the error, in both runs."""

    @tool
    def odd() -> Iterator[object]:
        yield 1
        yield object()
        yield 3

    seen: list[list[object]] = []
    for session in (record(tape), replay(tape)):
        with session:
            seen.append([])
            with pytest.raises(UsageError, match=r"builtins\.object"):
                seen[-1].extend(iter(odd()))
    assert seen == [[1], [1]]
