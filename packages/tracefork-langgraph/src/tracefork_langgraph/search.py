"""Find chat models and tools in a runnable: in its fields, closures and globals."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.func import _TaskFunction
from langgraph.pregel.protocol import PregelProtocol

_FRAMEWORKS = frozenset({"langchain", "langchain_core", "langgraph"})
_CONTAINERS = (list, tuple, set, frozenset)
_DEEPEST = 16
_WIDEST = 256  # Longer containers hold data, not models.


def chat_models(x: object) -> Iterator[BaseChatModel]:
    """Yield each chat model that `x` holds, once.

    Looks into runnables and graphs, into the closures and globals of their functions, and into
    the objects that their methods belong to. Does not find a model that is created during a run.
    """
    return (value for value in _reached(x) if isinstance(value, BaseChatModel))


def tools(x: object) -> Iterator[BaseTool]:
    """Yield each tool that `x` holds, once, including tools of agents inside tools."""
    return (value for value in _reached(x) if isinstance(value, BaseTool))


def answer_schemas(x: object) -> Iterator[Any]:
    """Yield the schema of the `response_format` of each agent in `x`."""
    module = sys.modules.get("langchain.agents.structured_output")
    if module is None:
        return
    strategies = (module.AutoStrategy, module.ProviderStrategy, module.ToolStrategy)
    for value in _reached(x):
        if isinstance(value, strategies):
            yield value.schema


def task_results(x: object) -> Iterator[Any]:
    """Yield the annotated return types of the functional API's tasks in `x`."""
    for value in _reached(x):
        if isinstance(value, _TaskFunction):
            with contextlib.suppress(Exception):  # An annotation that does not resolve here.
                yield typing.get_type_hints(value.func).get("return")


def asks_models(tool: BaseTool) -> bool:
    """Return whether a tool is an agent itself: it leads to a model or to a graph."""
    return any(isinstance(value, (BaseLanguageModel, PregelProtocol)) for value in _reached(tool))


def _reached(x: object) -> Iterator[object]:
    """Yield `x` and what it leads to, each object once. Does not look inside models."""
    seen: set[int] = set()
    waiting = [(x, 0)]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        yield value
        if not isinstance(value, BaseChatModel):
            waiting.extend((part, depth + 1) for part in _parts(value))


def _parts(value: object) -> Iterable[object]:
    match value:
        case types.FunctionType():
            return _used_by(value)
        case types.MethodType():
            return [value.__func__, *_attributes(value.__self__)]
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case dict():
            return list(value.values()) if len(value) <= _WIDEST else ()
        case type() | types.ModuleType():
            return ()
    if isinstance(value, _CONTAINERS):
        return value if len(value) <= _WIDEST else ()
    if isinstance(value, BaseTool):
        work = [type(value)._run, type(value)._arun]  # noqa: SLF001 - the methods that do the work
        return [*_attributes(value), *work]
    framework = type(value).__module__.partition(".")[0] in _FRAMEWORKS
    return _attributes(value) if framework or isinstance(value, Runnable) else ()


def _attributes(value: object) -> list[object]:
    """Return the attribute values of an object."""
    return list(getattr(value, "__dict__", {}).values())


def _used_by(function: types.FunctionType) -> list[object]:
    """Return the values that a function closes over, and the globals that it names."""
    used = list(vars(function).values())
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # The cell is still empty.
            used.append(cell.cell_contents)
    if (function.__module__ or "").partition(".")[0] in _FRAMEWORKS:
        return used  # The framework's globals are not the user's models.
    names = function.__globals__
    return used + [names[name] for name in _named_in(function.__code__) if name in names]


def named_by(function: types.FunctionType) -> Iterator[object]:
    """Yield the objects that a function names, and the members it names of modules and classes."""
    for used in _used_by(function):
        yield used
        if isinstance(used, (types.ModuleType, type)):
            names = set(_named_in(function.__code__))
            yield from (value for name, value in vars(used).items() if name in names)


def _named_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code looks up, including its inner functions and comprehensions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named_in(constant)
