"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

Strands runs each tool by the method `stream` of its class, below hooks, middleware, approvals and
retries, and makes a result of whatever that raises. So all of this runs in a replay as it did in
the recording. The methods are replaced in each class, also in those of the program.

A tool that yields is recorded value by value. Any other is one result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing, contextmanager
from functools import cached_property, wraps
from typing import Any

from strands.interrupt import Interrupt, InterruptException
from strands.tools.decorator import DecoratedFunctionTool
from strands.tools.tools import PythonAgentTool
from strands.types._events import ToolInterruptEvent, ToolResultEvent, ToolStreamEvent
from strands.types.tools import AgentTool

from tracefork_bedrock.strands.live_tools import function_of, is_agent, is_live, recorded_tool
from tracefork_bedrock.strands.steps import is_recorded_here
from tracefork_bedrock.strands.tool_changes import make_again, noted
from tracefork_bedrock.strands.tool_values import VALUES, Outcome, Progress, plain
from tracefork_core import ToolError, TraceforkError
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    atool_exchange,
    atool_stream,
    events_in,
    replace_in_classes,
    tool_mark,
)

_NOT_IN_NAMES = re.compile(r"^[^\w]|[^\w.:/-]")
_INPUT, _RESPONSES = "(input)", "(responses)"
"""The names of arguments that are no object, and of what people answered to the tool."""
_HANDOFF = "handoff_to_agent"
_OF_MODEL = "event_loop_cycle_id"
"""In the state of a run that a model calls a tool in."""


def put_in(patches: Patches) -> None:
    """Make the calls of all tools exchanges of the open session."""
    replace_in_classes(patches, AgentTool, ("stream",), _as_exchange)


def _as_exchange(_: type, __: str, original: Any) -> Any:
    if not inspect.isfunction(original):
        return original

    @wraps(original)
    def stream(self: Any, tool_use: Any, invocation_state: Any, **options: Any) -> Any:
        def work(tool_use: Any) -> AsyncIterable[Any]:
            events: AsyncIterable[Any] = original(self, tool_use, invocation_state, **options)
            return events

        if not is_recorded_here():
            return work(tool_use)
        return _in_step(self, tool_use, invocation_state, work)

    return stream


async def _in_step(
    tool: Any, tool_use: Any, run: Any, work: Callable[[Any], AsyncIterable[Any]]
) -> AsyncGenerator[Any, None]:
    name = str(tool_use["name"])
    if is_live(tool):
        kind, called = _step_of(tool, name, tool_use)
        events = events_in(RunningStep.begin(kind, called), work(tool_use))
    else:
        call = _Call(tool, name, tool_use, run, work)
        events = events_in(RunningStep.begin("tool", name), call.events())
    async with aclosing(events) as inside:
        async for event in inside:
            yield event


def _step_of(tool: Any, name: str, tool_use: Any) -> tuple[str, str]:
    """Return the kind and the name of the step of a tool that runs in replays too."""
    given = tool_use.get("input")
    home = getattr(function_of(tool), "__module__", "")
    if name == _HANDOFF and home == "strands.multiagent.swarm" and isinstance(given, dict):
        return "handoff", str(given.get("agent_name", name))
    return ("delegation" if is_agent(tool) else "tool"), name


class _Call:
    """One call of a tool that is an exchange."""

    def __init__(
        self,
        tool: Any,
        name: str,
        tool_use: Any,
        run: Any,
        work: Callable[[Any], AsyncIterable[Any]],
    ) -> None:
        self._tool, self._name, self._use, self._run, self._work = tool, name, tool_use, run, work
        self._agent = run.get("agent")
        self._has_run = False
        self._is_decorated = isinstance(tool, DecoratedFunctionTool)

    async def events(self) -> AsyncGenerator[Any, None]:
        """Yield the events of the tool: its own, or the recorded ones."""
        try:
            if self._yields():
                async for item in self._streamed():
                    if isinstance(item, Progress):
                        yield ToolStreamEvent(self._use, item.data)
                    else:
                        yield self._ended(item)
            else:
                yield self._ended(await self._exchanged())
        except Exception as error:
            if isinstance(error, TraceforkError) or not self._is_decorated:
                raise
            yield self._failed(error)

    def _yields(self) -> bool:
        if self._is_decorated:
            return inspect.isasyncgenfunction(self._tool._tool_func)  # noqa: SLF001
        return not isinstance(self._tool, PythonAgentTool)

    async def _exchanged(self) -> Any:
        async def work(**arguments: Any) -> object:
            return [item async for item in self._items(arguments)][-1]

        name, arguments = self._tape_name, self._arguments()
        return await atool_exchange(name, arguments, work, VALUES, **self._options)

    async def _streamed(self) -> AsyncGenerator[Any, None]:
        items = atool_stream(
            self._tape_name, self._arguments(), self._given, VALUES, **self._options
        )
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    async def _given(self, **arguments: Any) -> AsyncGenerator[Any, None]:
        async for item in self._items(arguments):
            yield item

    async def _items(self, arguments: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Run the tool, and yield its progress and its result as data for the tape."""
        use, last = {**self._use, "input": self._input_of(arguments)}, None
        self._has_run = True
        with noted(self._agent, self._run) as changes, _is_recorded(self._name):
            try:
                async for event in self._work(use):
                    if isinstance(event, (ToolInterruptEvent, ToolResultEvent)):
                        last = event
                        break
                    data = event["tool_stream_event"]["data"] if _is_progress(event) else event
                    last = data
                    yield Progress(plain(data))
                last = self._kept(last, changes.all())
            except InterruptException as error:
                last = Outcome(None, [error.interrupt], changes.all())
            except Exception as error:
                if isinstance(error, TraceforkError) or not changes.all():
                    raise
                last = Outcome.failed(error, changes.all())
        yield last

    def _kept(self, last: Any, changes: list[Any]) -> object:
        if isinstance(last, ToolInterruptEvent):
            return Outcome(None, list(last.interrupts), changes)
        if isinstance(last, ToolResultEvent):
            error, last = last.exception, last.tool_result
            if error is not None and _is_error_of(last, error):
                raise error
        if last is None:
            last = VALUES.failed(f"Tool '{self._name}' did not return a result")
        result = {key: value for key, value in last.items() if key != "toolUseId"}
        return Outcome(result, [], changes) if changes else result

    def _ended(self, item: Any) -> Any:
        """Return the event of a result or an interrupt."""
        if isinstance(item, str):  # A fork gave the tool that yields a text.
            item = VALUES.said(item)
        outcome = item if isinstance(item, Outcome) else Outcome(item, [], [])
        if not self._has_run:
            make_again(outcome.changes, self._agent, self._run)
        if (error := outcome.error(self._options["raises"])) is not None:
            raise error
        if outcome.interrupts:
            return ToolInterruptEvent(
                self._use, [self._registered(it) for it in outcome.interrupts]
            )
        result: Any = {"toolUseId": self._use["toolUseId"], **(outcome.result or {})}
        return ToolResultEvent(result)

    def _registered(self, interrupt: Interrupt) -> Interrupt:
        """Note an interrupt in the agent, as the tool itself does; the answer goes there."""
        state = getattr(self._agent, "_interrupt_state", None)
        return interrupt if state is None else state.interrupts.setdefault(interrupt.id, interrupt)

    def _failed(self, error: Exception) -> Any:
        return ToolResultEvent(_error(self._use["toolUseId"], error), exception=error)

    @property
    def _tape_name(self) -> str:
        return _NOT_IN_NAMES.sub("_", self._name) or "_"

    @property
    def _options(self) -> dict[str, Any]:
        mark = tool_mark(getattr(self._tool, "_tool_func", None))
        raises = (ValueError, *(mark.raises if mark else ()))
        return {"effect": mark.effect if mark else None, "raises": raises}

    def _arguments(self) -> dict[str, Any]:
        given = self._use.get("input")
        if not isinstance(given, dict):
            return {_INPUT: given}
        told = {key: value for key, value in given.items() if key not in self._objects}
        answers = self._answers()
        return {**told, _RESPONSES: answers} if answers else told

    def _input_of(self, arguments: dict[str, Any]) -> Any:
        if _INPUT in arguments:
            return arguments[_INPUT]
        told = {key: value for key, value in arguments.items() if key != _RESPONSES}
        return {**told, **self._objects}

    @cached_property
    def _objects(self) -> dict[str, Any]:
        """What a call by the program itself passes besides the arguments that the tool declares."""
        given = self._use.get("input")
        if _OF_MODEL in self._run or not isinstance(given, dict):
            return {}
        declared = self._tool.tool_spec["inputSchema"].get("json", {}).get("properties", {})
        return {key: value for key, value in given.items() if key not in declared}

    def _answers(self) -> dict[str, Any]:
        """Return what people answered to the interrupts of this call."""
        state = getattr(self._agent, "_interrupt_state", None)
        prefix = f"v1:tool_call:{self._use['toolUseId']}:"
        return {
            it.name: it.response
            for it in (state.interrupts.values() if state else ())
            if it.id.startswith(prefix) and it.response is not None
        }


def _is_progress(event: Any) -> bool:
    return isinstance(event, ToolStreamEvent)


def _error(tool_use_id: str, error: Exception) -> Any:
    """Return the result that Strands makes of an error of a function."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, ToolError):
        kind, text = error.kind.rpartition(".")[2], error.message
    named = "" if isinstance(error, ValueError) else f"{kind} - "
    content = [{"text": f"Error: {named}{text}"}]
    return {"toolUseId": tool_use_id, "status": "error", "content": content}


def _is_error_of(result: Any, error: Exception) -> bool:
    return bool(result == _error(result["toolUseId"], error))


@contextmanager
def _is_recorded(name: str) -> Any:
    token = recorded_tool.set(name)
    try:
        yield
    finally:
        recorded_tool.reset(token)
