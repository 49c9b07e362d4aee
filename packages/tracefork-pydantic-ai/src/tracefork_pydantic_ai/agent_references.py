"""Find out whether a function runs agents, from what its code names.

    writer = Agent(…)

    @planner.tool_plain
    async def write(topic: str) -> str:
        return (await writer.run(topic)).output

The code of `write` names `writer` and `run`. Names lead to globals, to variables of enclosing
functions, to attributes of a method's own object, and to dependencies of the run. They also lead
into functions of the program that this one calls, and to their names. They are followed in their
own order, not in that of a set, so that each process comes to the same end.
"""

from __future__ import annotations

import inspect
import sysconfig
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pydantic_ai.agent import AbstractAgent

_RUNNING = frozenset(
    ("run", "run_sync", "run_stream", "run_stream_sync", "run_stream_events", "iter")
)
_DIRECT = "pydantic_ai.direct"
"""The module whose functions ask a model without an agent."""
_GRAPHS = "pydantic_graph"
_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_DEPTH = 4
_ITEMS = 50


def runs_agents(function: Any, deps: object = None) -> bool:
    """Return whether a function names an agent, and a method that runs one."""
    search = _Search(deps)
    search.enter(function, is_tool=True)
    return search.asks_directly or (search.has_agent and not search.names.isdisjoint(_RUNNING))


class _Search:
    """What a function and those that it calls name."""

    def __init__(self, deps: object) -> None:
        self.names: set[str] = set()
        self.has_agent = False
        self.asks_directly = False
        self._deps = deps
        self._seen: set[object] = set()

    def enter(self, function: Any, *, is_tool: bool = False) -> None:
        """Look at a function; at those of other packages only if they are the tool itself."""
        owner: object = None
        function = inspect.unwrap(function)
        while isinstance(function, (partial, MethodType)):
            if isinstance(function, MethodType):
                owner, function = function.__self__, inspect.unwrap(function.__func__)
            else:
                for given in (*function.args, *function.keywords.values()):
                    self._look_at(given, 0)
                function = inspect.unwrap(function.func)
        if not isinstance(function, FunctionType):
            call = getattr(type(function), "__call__", None)  # noqa: B004 - it is looked at
            if is_tool and isinstance(call, FunctionType):
                self.enter(MethodType(call, function), is_tool=True)
            return
        code = function.__code__
        if id(function) in self._seen or not (is_tool or _is_of_program(code)):
            return
        self._seen.add(id(function))
        names = set(_names(code))
        self.names |= names
        for value in _closure(function):
            self._look_at(value, 0)
        for name in sorted(names & function.__globals__.keys()):
            self._look_at(function.__globals__[name], 0)
        for holder in (owner, self._deps) if is_tool else (owner,):
            self._look_into(holder, 0, names)

    def _look_at(self, value: Any, depth: int) -> None:
        if depth > _DEPTH or isinstance(value, (str, bytes, int, float)) or value is None:
            return
        kind = value if isinstance(value, type) else type(value)
        if issubclass(kind, AbstractAgent) or _is_graph(kind):
            self.has_agent = True
        elif isinstance(value, (FunctionType, MethodType, partial)):
            if getattr(value, "__module__", None) == _DIRECT:
                self.asks_directly = True
            self.enter(value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in list(value)[:_ITEMS]:
                self._look_at(item, depth + 1)
        elif isinstance(value, dict):
            for item in list(value.values())[:_ITEMS]:
                self._look_at(item, depth + 1)
        elif not isinstance(value, type):
            self._look_into(value, depth + 1, set(self.names))

    def _look_into(self, holder: Any, depth: int, names: set[str]) -> None:
        """Look at the attributes of an object that the code names, without calling any."""
        try:
            own = vars(holder)
        except TypeError:
            return
        for name in sorted(names & own.keys()):
            if (id(holder), name) not in self._seen:
                self._seen.add((id(holder), name))
                self._look_at(own[name], depth)
        if not isinstance(holder, ModuleType):
            for name in sorted(names):
                method = inspect.getattr_static(type(holder), name, None)
                if isinstance(method, FunctionType):
                    self.enter(MethodType(method, holder))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of a function's code, and of the functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _closure(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # It is filled later.
            continue


def _is_of_program(code: CodeType) -> bool:
    return not code.co_filename.startswith((*_INSTALLED, "<frozen"))


def _is_graph(kind: type) -> bool:
    return any(
        base.__module__.partition(".")[0] == _GRAPHS and base.__name__.startswith("Graph")
        for base in kind.__mro__
    )
