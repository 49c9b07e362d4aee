"""A redirected function calls another one, under every reference, until that is undone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import FunctionType
from typing import Any, cast

import pytest

from tracefork_core.patching.code_swap import copied, is_redirection, redirect


def called(function: Any, log: list[object]) -> Callable[[], None]:
    """Redirect a function to a copy of itself, and log each call."""
    copy = copied(cast("FunctionType", function))

    def call(*args: object, **kwargs: object) -> object:
        log.append((args, kwargs))
        return copy(*args, **kwargs)

    return redirect(function, call)


def around(first: int) -> Callable[..., object]:
    def function(a: int, b: int = 2, /, c: int = 3, *rest: int, d: int = 4, **more: int) -> object:
        return first, a, b, c, rest, d, more

    return function


def test_all_parameters_arrive_with_their_defaults() -> None:
    """Positional, keyword, starred; and the closure is the function's own."""
    log: list[object] = []
    function = around(0)
    undo = called(function, log)
    assert function(1) == (0, 1, 2, 3, (), 4, {})
    assert function(5, 6, 7, 8, d=9, e=1) == (0, 5, 6, 7, (8,), 9, {"e": 1})
    assert log == [((1, 2, 3), {"d": 4}), ((5, 6, 7, 8), {"d": 9, "e": 1})]
    undo()
    assert function(1) == (0, 1, 2, 3, (), 4, {})
    assert len(log) == 2


class Base:
    def greet(self, name: str, *, __mark: str = "") -> str:
        return f"hello {name}{__mark}"


class Derived(Base):
    def greet(self, name: str, *, __mark: str = "!") -> str:
        return super().greet(name) + __mark


def test_super_works_in_a_redirected_method() -> None:
    """It needs the cell of the class; and a private parameter keeps its mangled name."""
    log: list[object] = []
    bound = Derived().greet
    undo = called(Derived.greet, log)
    try:
        assert (bound("a"), Derived().greet("b")) == ("hello a!", "hello b!")
    finally:
        undo()
    assert len(log) == 2


def test_sent_and_thrown_values_reach_a_generator() -> None:
    """Sync and async, and the end of each."""

    def sync() -> Iterator[Any]:
        try:
            while True:
                yield (yield "ready")
        except KeyError:
            yield "caught"

    async def streamed() -> AsyncIterator[Any]:
        try:
            while True:
                yield (yield "ready")
        except KeyError:
            yield "caught"

    async def steps() -> list[object]:
        found: Any = streamed()
        return [await anext(found), await found.asend(1), await found.athrow(KeyError())]

    log: list[object] = []
    undoing = [called(sync, log), called(streamed, log)]
    made: Any = sync()
    assert [next(made), made.send(1), made.throw(KeyError())] == ["ready", 1, "caught"]
    assert asyncio.run(steps()) == ["ready", 1, "caught"]
    assert len(log) == 2
    for undo in undoing:
        undo()


def test_a_running_call_survives_the_undoing() -> None:
    """A generator that began before continues as it was."""

    def count() -> Iterator[int]:
        yield 1
        yield 2

    undo = called(count, [])
    running = count()
    assert next(running) == 1
    undo()
    assert list(running) == [2]


def test_the_undoing_leaves_what_others_did() -> None:
    """Code that somebody else set meanwhile stays."""

    def function() -> int:
        return 1

    undo = called(function, [])
    function.__code__ = (lambda: 2).__code__
    undo()
    assert function() == 2


def test_local_variables_of_a_redirected_closure_can_be_read() -> None:
    """Debuggers and tracebacks with variables do that."""

    def function(what: int) -> None:
        seen.append(what)

    seen: list[object] = []
    frames: list[dict[str, object]] = []

    def call(what: int) -> None:
        frame = sys._getframe(1)
        assert is_redirection(frame.f_code)
        frames.append(dict(frame.f_locals))

    undo = redirect(cast("FunctionType", function), call)
    function(3)
    undo()
    assert frames[0]["what"] == 3
    assert frames[0]["seen"] is seen


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_of_exec_can_be_redirected(kind: str) -> None:
    """Its module has no file."""
    names: dict[str, Any] = {}
    exec(f"{kind} f(x): return x", names)
    log: list[object] = []
    undo = called(names["f"], log)
    value = names["f"](1)
    undo()
    assert (asyncio.run(value) if kind != "def" else value) == 1
