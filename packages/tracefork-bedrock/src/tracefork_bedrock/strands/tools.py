"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

Strands runs each tool by the method `stream` of its class, below hooks, middleware, approvals and
retries, and makes a result of whatever that raises. So all of this runs in a replay as it did in
the recording. The methods are replaced in each class, also in those of the program.

A tool that yields is recorded value by value. Any other is one result.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing
from functools import cached_property, partial, wraps
from typing import Any

from strands.interrupt import Interrupt, InterruptException
from strands.tools.decorator import DecoratedFunctionTool
from strands.tools.tools import PythonAgentTool
from strands.types._events import ToolInterruptEvent, ToolResultEvent, ToolStreamEvent
from strands.types.tools import AgentTool

from tracefork_bedrock.strands.live_tools import function_of, is_agent, is_live
from tracefork_bedrock.strands.tool_changes import OfAgent
from tracefork_bedrock.strands.tool_values import VALUES, Asks, Progress, plain
from tracefork_core import ToolError, TraceforkError
from tracefork_core.adapters import (
    ChangingCall,
    Patches,
    RunningStep,
    atool_exchange,
    atool_stream,
    events_in,
    is_recorded_here,
    replace_in_classes,
    tool_mark,
)

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
        name = str(tool_use["name"])
        if is_live(self):
            step = partial(RunningStep.begin, *_step_of(self, name, tool_use))
            return events_in(step, work(tool_use))
        call = _Call(self, name, tool_use, invocation_state, work)
        return events_in(partial(RunningStep.begin, "tool", name), call.events())

    return stream


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
        self._is_decorated = isinstance(tool, DecoratedFunctionTool)
        self._function = getattr(tool, "_tool_func", None)
        mark = tool_mark(self._function)
        changes = OfAgent(self._agent, run)
        self._call = ChangingCall(name, changes, VALUES.fields, mark.raises if mark else ())

    async def events(self) -> AsyncGenerator[Any, None]:
        """Yield the events of the tool: its own, or the recorded ones."""
        try:
            if self._yields():
                async with aclosing(self._streamed()) as items:
                    async for item in items:
                        if isinstance(item, Progress):
                            yield ToolStreamEvent(self._use, item.data)
                        else:
                            yield await self._ended(item)
            else:
                yield await self._ended(await self._exchanged())
        except Exception as error:
            if isinstance(error, TraceforkError) or not self._is_decorated:
                raise
            yield self._failed(error)

    def _yields(self) -> bool:
        if self._is_decorated:
            return inspect.isasyncgenfunction(self._function)
        return not isinstance(self._tool, PythonAgentTool)

    async def _exchanged(self) -> Any:
        async def work(**arguments: Any) -> object:
            return [item async for item in self._items(**arguments)][-1]

        function = self._function
        return await atool_exchange(self._name, self._arguments(), work, VALUES, function=function)

    def _streamed(self) -> AsyncGenerator[Any, None]:
        return atool_stream(
            self._name, self._arguments(), self._items, VALUES, function=self._function
        )

    async def _items(self, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Run the tool, and yield its progress and its result as data for the tape."""
        use, last = {**self._use, "input": self._input_of(arguments)}, None
        try:
            with self._call.running():
                async for event in self._work(use):
                    if isinstance(event, (ToolInterruptEvent, ToolResultEvent)):
                        last = event
                        break
                    data = event["tool_stream_event"]["data"] if _is_progress(event) else event
                    last = data
                    yield Progress(plain(data))
                last = self._kept(last)
        except InterruptException as error:
            last = Asks([error.interrupt])
        except Exception as error:  # noqa: BLE001 - any, and most are raised again
            yield await self._call.raised(error)
            return
        yield await self._call.returned(last)

    def _kept(self, last: Any) -> object:
        if isinstance(last, ToolInterruptEvent):
            return Asks(list(last.interrupts))
        if isinstance(last, ToolResultEvent):
            error, last = last.exception, last.tool_result
            if error is not None and _is_error_of(last, error):
                raise error
        if last is None:
            last = VALUES.failed(f"Tool '{self._name}' did not return a result")
        return {key: value for key, value in last.items() if key != "toolUseId"}

    async def _ended(self, item: Any) -> Any:
        """Return the event of a result or an interrupt."""
        if isinstance(item, str):  # A fork gave the tool that yields a text.
            item = VALUES.said(item)
        given: Any = await self._call.ended(item)
        if isinstance(given, Asks):
            asked = [self._registered(interrupt) for interrupt in given.interrupts]
            return ToolInterruptEvent(self._use, asked)
        result: Any = {"toolUseId": self._use["toolUseId"], **(given or {})}
        return ToolResultEvent(result)

    def _registered(self, interrupt: Interrupt) -> Interrupt:
        """Note an interrupt in the agent, as the tool itself does; the answer goes there."""
        state = getattr(self._agent, "_interrupt_state", None)
        return interrupt if state is None else state.interrupts.setdefault(interrupt.id, interrupt)

    def _failed(self, error: Exception) -> Any:
        return ToolResultEvent(_error(self._use["toolUseId"], error), exception=error)

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
