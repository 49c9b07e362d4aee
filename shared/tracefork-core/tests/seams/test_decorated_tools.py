"""A tool of a decorated function: what the decorator returns decides, not how it is defined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, Tape, fork, record, replay, tool
from tracefork_core.order import turnstile

ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@dataclass
class Hit:
    page: str


def politely(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: object) -> Any:
        return function(*args)

    return wrapper


def rudely(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: object) -> Any:
        return function(*args)

    return wrapper


def noted(what: object) -> Any:
    ran.append(what)
    return what


def plain_hits(count: int) -> Iterator[int]:
    for n in range(count):
        yield noted(n)
    return noted("end")


async def plain_ahits(count: int) -> AsyncIterator[int]:
    for n in range(count):
        await asyncio.sleep(0)
        yield noted(n)


async def plain_lookup(key: int) -> int:
    await asyncio.sleep(0)
    return int(noted(key)) + 1


@tool(effect="read")
@politely
def objects(count: int) -> Iterator[Hit]:
    for n in range(count):
        yield Hit(f"page {noted(n)}")


async def read(items: Any) -> list[object]:
    return [item async for item in items]


@pytest.mark.parametrize("decorator", [politely, rudely])
@pytest.mark.parametrize("kind", ["generator", "async generator", "coroutine"])
def test_a_decorated_function_of_any_kind_replays(
    kind: str, decorator: Callable[..., Any], tape: Path
) -> None:
    """With and without `functools.wraps`; values come one by one, and the kind is the same."""

    def agent() -> object:
        if kind == "generator":
            made = tool(decorator(plain_hits), name="it")(3)  # type: ignore[call-overload]
            first = next(made)
            return [first, list(made)]
        if kind == "async generator":
            return asyncio.run(read(tool(decorator(plain_ahits), name="it")(3)))  # type: ignore[call-overload]
        return asyncio.run(tool(decorator(plain_lookup), name="it")(3))  # type: ignore[call-overload]

    with record(tape):
        recorded = agent()
    done = list(ran)
    with replay(tape) as run:
        assert agent() == recorded
    assert ran == done, "the function ran at replay"
    assert run.digest == run.tape.digest
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert exchange.end == "eof"


def test_objects_of_a_decorated_generator_are_rebuilt(tape: Path) -> None:
    """The annotation of the generator below the decorator says what it yields."""
    with record(tape):
        recorded = list(objects(2))
    with replay(tape):
        assert list(objects(2)) == recorded == [Hit("page 0"), Hit("page 1")]


@pytest.mark.parametrize("count", [0, 1])
def test_a_decorated_generator_that_is_left_is_replayed_as_far(
    count: int, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not read at all, or closed after a value."""
    monkeypatch.setattr(turnstile, "STALL_SECONDS", 0.3)  # The divergence comes after that.

    def agent() -> list[Hit]:
        made: Any = objects(5)
        taken = [next(made) for _ in range(count)]
        made.close()
        list(objects(1))
        return taken

    with record(tape):
        recorded = agent()
    done = list(ran)
    with replay(tape) as run:
        assert agent() == recorded
    assert (run.digest, ran) == (run.tape.digest, done)
    with pytest.raises(DivergenceError), replay(tape):
        list(objects(5))


def test_an_exception_in_a_decorated_generator_comes_where_it_came(tape: Path) -> None:
    """At the first step, not at the call."""

    @tool
    @rudely
    def failing() -> Iterator[int]:
        raise LookupError(noted("no page"))
        yield 1

    for scope in (record(tape), replay(tape)):
        with scope:
            made = failing()
            with pytest.raises(LookupError, match="no page"):
                next(made)
    assert ran == ["no page"]


def test_a_decorated_generator_continues_live_in_a_fork(tape: Path) -> None:
    """Only what comes from the fork point on runs."""

    def agent() -> list[object]:
        return [list(objects(1)), list(objects(2))]

    with record(tape):
        agent()
    del ran[:]
    with fork(tape, at=1):
        agent()
    assert ran == [0, 1]


def test_decorated_coroutines_overlap_as_they_did(tape: Path) -> None:
    """Two calls at once; the second one ends first."""

    async def agent() -> list[str]:
        gate, order = asyncio.Event(), list[str]()

        async def wait(name: str) -> str:
            if name == "a":
                await gate.wait()
            gate.set()
            return str(noted(name))

        waiting = tool(rudely(wait), name="wait")  # type: ignore[call-overload]

        async def branch(name: str) -> None:
            order.append(await waiting(name))

        await asyncio.gather(branch("a"), branch("b"))
        return order

    with record(tape):
        recorded = asyncio.run(agent())
    with replay(tape) as run:
        assert asyncio.run(agent()) == recorded == ["b", "a"]
    assert run.digest == run.tape.digest
    assert ran == ["b", "a"]
