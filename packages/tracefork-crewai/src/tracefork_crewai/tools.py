"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

CrewAI runs a tool in its own `run` (for models that call functions), or as a `CrewStructuredTool`
(for agents that reason in text). A program may also pass functions to a model directly. In each
case CrewAI's own code still runs, and only the work itself is replaced. So CrewAI validates
arguments, counts usages and reads its cache at replay as in the recording.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from crewai.llm import LLM
from crewai.llms.base_llm import BaseLLM
from crewai.tools.base_tool import BaseTool, Tool
from crewai.tools.structured_tool import CrewStructuredTool
from crewai.utilities.string_utils import sanitize_tool_name

from tracefork_core.adapters import Patches, in_session, replace_in_classes
from tracefork_crewai.live_tools import is_live
from tracefork_crewai.tool_calls import Leaf, acall, call
from tracefork_crewai.tool_values import Values, declared_by


def put_in(patches: Patches) -> None:
    """Make the calls of tools exchanges of the open session."""
    for kind in (BaseTool, Tool):
        patches.wrap(kind, "run", _run)
        patches.wrap(kind, "arun", _arun)
    replace_in_classes(patches, BaseTool, ("run",), _of_subclass)
    patches.wrap(CrewStructuredTool, "invoke", _invoke)
    patches.wrap(CrewStructuredTool, "ainvoke", _ainvoke)
    patches.wrap(BaseLLM, "_handle_tool_execution", _with_functions)
    patches.wrap(LLM, "_handle_tool_call", _with_functions)


def _of_subclass(owner: type, _: str, run: Callable[..., Any]) -> Callable[..., Any]:
    return run if owner in (BaseTool, Tool) else _own_run(run)


class _Standing:
    """A tool as CrewAI's own code sees it, with its work replaced."""

    def __init__(self, tool: object, **work: Callable[..., Any]) -> None:
        self.__dict__.update(work, _tool=tool)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._tool, name, value)


def _run(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def stood_in(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = _leaf_of(self)
        if leaf is None:
            return run(self, *args, **kwargs)
        work = self.func if isinstance(self, Tool) else self._run
        tool = _Standing(self, _run=_working(leaf, work), func=_working(leaf, work))
        return run(tool, *args, **kwargs)

    return stood_in


def _own_run(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a `run` that does the work itself. One that calls `super().run` is recorded there."""
    code = getattr(inspect.unwrap(run), "__code__", None)
    if code is None or "super" in code.co_names:
        return run

    @wraps(run)
    def stood_in(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = _leaf_of(self)
        if leaf is None:
            return run(self, *args, **kwargs)
        return call(leaf, partial(run, self), args, kwargs)

    return stood_in


def _arun(arun: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(arun)
    async def stood_in(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = _leaf_of(self)
        if leaf is None:
            return await arun(self, *args, **kwargs)
        return await arun(_Standing(self, _arun=_aworking(leaf, self._arun)), *args, **kwargs)

    return stood_in


def _invoke(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    def stood_in(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = _leaf_of(self)
        if leaf is None:
            return invoke(self, *args, **kwargs)
        return invoke(_Standing(self, func=_working(leaf, self.func)), *args, **kwargs)

    return stood_in


def _ainvoke(ainvoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ainvoke)
    async def stood_in(self: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = _leaf_of(self)
        if leaf is None:
            return await ainvoke(self, *args, **kwargs)
        if inspect.iscoroutinefunction(self.func):
            work = _aworking(leaf, self.func)
        else:
            work = _elsewhere(_working(leaf, self.func))
        return await ainvoke(_Standing(self, func=work), *args, **kwargs)

    return stood_in


def _with_functions(handle: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method that calls a function from a model's `available_functions`."""
    signature = inspect.signature(handle)

    @wraps(handle)
    def handled(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments.get("available_functions")
        if given and in_session():
            stubs = {name: _function(name, function) for name, function in given.items()}
            bound.arguments["available_functions"] = stubs
        return handle(*bound.args, **bound.kwargs)

    return handled


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (BaseTool, CrewStructuredTool)) or is_live(None, function):
        return function
    return _working(Leaf(name, function, Values(declared_by(function))), function)


def _leaf_of(tool: Any) -> Leaf | None:
    """Return the leaf of a tool; None if its calls are not exchanges."""
    if not in_session():
        return None
    whole = tool
    if isinstance(tool, CrewStructuredTool):
        whole = tool._original_tool or getattr(tool.func, "__self__", None)  # noqa: SLF001
    body = _body_of(whole) if isinstance(whole, BaseTool) else tool.func
    if is_live(whole, body):
        return None
    values = Values(declared_by(body, tool.result_schema))
    return Leaf(sanitize_tool_name(tool.name), body, values, words=tool.format_output_for_agent)


def _body_of(tool: Any) -> Any:
    """Return the function that does a tool's work."""
    return tool.func if isinstance(tool, Tool) else type(tool)._run  # noqa: SLF001


def _working(leaf: Leaf, work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the work, or takes its result from a tape."""

    def whole(*args: Any, **kwargs: Any) -> Any:
        result = work(*args, **kwargs)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    return lambda *args, **kwargs: call(leaf, whole, args, kwargs)


def _aworking(leaf: Leaf, work: Callable[..., Any]) -> Callable[..., Any]:
    async def aworking(*args: Any, **kwargs: Any) -> Any:
        return await acall(leaf, work, args, kwargs)

    return aworking


def _elsewhere(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return `work` bound to this context: CrewAI's executor for async agents drops it."""
    context = contextvars.copy_context()
    return lambda *args, **kwargs: context.run(work, *args, **kwargs)
