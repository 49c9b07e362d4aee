"""Make one call an exchange: of a tool, of a memory, of an MCP server.

Requests that it makes meanwhile, to a model or a database, are part of it and not exchanges of
their own.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from crewai.events.event_context import _event_id_stack

from tracefork_core import ToolError
from tracefork_core.adapters import (
    Effect,
    atool_exchange,
    begin_step,
    current_step,
    end_step,
    in_session,
    tool_exchange,
)
from tracefork_crewai.inside import inside, is_inside
from tracefork_crewai.tool_arguments import Arguments
from tracefork_crewai.tool_values import Values

Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """What is known about a callable.

    Args:
        name: its name on the tape.
        body: the function whose code names what it returns and raises.
        values: encodes its results.
        effect: its side effect; if None, it may be a write.
        words: returns the text that an agent receives for a result.
    """

    name: str
    body: Callable[..., Any]
    values: Values
    effect: Effect | None = None
    words: Callable[[object], str] = str


def call(leaf: Leaf, work: Callable[..., Any], args: Args, kwargs: Mapping[str, Any]) -> Any:
    """Return what `work` returns, or what it returned in the recording."""
    if not in_session():
        return work(*args, **kwargs)
    arguments = Arguments(args, kwargs)

    def run(**told: Any) -> object:
        args, kwargs = arguments.given(told)
        with inside():
            result = work(*args, **kwargs)
        return _kept(leaf, result)

    try:
        with _step_of(leaf):
            return tool_exchange(leaf.name, arguments.told, run, leaf.values, **_said(leaf))
    except ToolError as error:
        raise _in_its_words(error) from error


async def acall(
    leaf: Leaf, work: Callable[..., Awaitable[Any]], args: Args, kwargs: Mapping[str, Any]
) -> Any:
    """Do what `call` does, for a coroutine function."""
    if not in_session():
        return await work(*args, **kwargs)
    arguments = Arguments(args, kwargs)

    async def run(**told: Any) -> object:
        args, kwargs = arguments.given(told)
        with inside():
            result = await work(*args, **kwargs)
        return _kept(leaf, result)

    try:
        with _step_of(leaf):
            said = _said(leaf)
            return await atool_exchange(leaf.name, arguments.told, run, leaf.values, **said)
    except ToolError as error:
        raise _in_its_words(error) from error


@contextmanager
def _step_of(leaf: Leaf) -> Iterator[None]:
    """Make a step if the name has a kind ("memory.recall"): CrewAI emits no event for some."""
    kind, _, name = leaf.name.partition(".")
    if not name or is_inside():
        yield
        return
    step = begin_step(kind, name, parent=current_step.get())
    token = current_step.set(step)
    try:
        yield
    finally:
        current_step.reset(token)
        end_step(step)


class RaisedError(ToolError):
    """An exception of a class that a tape cannot restore. Its text is the recorded message."""

    def __str__(self) -> str:
        return self.message


def _in_its_words(error: ToolError) -> ToolError:
    if isinstance(error, RaisedError):
        return error
    # Agents, and CrewAI's records of failures, receive the class name and the message.
    name = error.kind.rpartition(".")[2] or "Exception"
    kind: type[RaisedError] = type(name, (RaisedError,), {"__module__": __name__})
    return kind(error.kind, error.message)


def _said(leaf: Leaf) -> dict[str, Any]:
    raises = {kind.__name__: kind for kind in _exceptions_of(leaf.body)}
    return {"effect": leaf.effect, "raises": raises.values(), "returns": leaf.body}


def _kept(leaf: Leaf, result: object) -> object:
    """Return a result, or the agent's text for it if a replay could not restore the result."""
    if not leaf.values.hold(result) and _is_asked_by_an_agent():
        return leaf.words(result)
    return result


def _is_asked_by_an_agent() -> bool:
    around = _event_id_stack.get()
    return bool(around) and around[-1][1] == "tool_usage_started"


def _exceptions_of(body: Callable[..., Any]) -> Iterator[type[Exception]]:
    """Yield the exceptions that a function's code names; of equal names, the first counts."""
    function = inspect.unwrap(body)
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return
    known = {**function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # The cell of a name that is not bound yet.
            continue
    names = list(_names_in(function.__code__))
    for name in names:
        named = known.get(name)
        objects = [named]
        if isinstance(named, (types.ModuleType, type)):
            objects += [vars(named).get(inner) for inner in names]
        yield from (it for it in objects if isinstance(it, type) and issubclass(it, Exception))


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)
