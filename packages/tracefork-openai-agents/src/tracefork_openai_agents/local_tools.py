"""Make exchanges of the tools that act on this machine: shells, patches, custom tools, computers.

A replay never runs them. In forks they are writes: a fork runs them only if you allow it.

The SDK has the executor of each such tool in an attribute. While a session is open, a descriptor
takes the attribute's place on the class and hands out the executor with its calls recorded. So
approvals, hooks and spans see the user's own tool, and all of the SDK's own code runs in a replay.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from agents.run_internal import tool_actions
from agents.tool import ApplyPatchTool, CustomTool, LocalShellTool, ShellTool

from tracefork_core.adapters import Patches, answering_tape, in_session
from tracefork_openai_agents import misses
from tracefork_openai_agents.steps import inside_tool
from tracefork_openai_agents.tool_calls import call

_ABSENT = object()
_ORIGINAL = "_tracefork_original"
_CONTEXT = "ctx_wrapper"
_EXECUTE = ("ApplyPatchAction", "CustomToolAction", "LocalShellAction", "ShellAction")


def put_in(patches: Patches) -> None:
    """Make the calls of local tools exchanges of the open session."""
    for owner, name, recorded in (
        (ShellTool, "executor", _shell),
        (LocalShellTool, "executor", _local_shell),
        (CustomTool, "on_invoke_tool", _custom),
        (ApplyPatchTool, "editor", _Editor),
    ):
        _replace(patches, owner, name, recorded)
    for action in _EXECUTE:
        patches.wrap(getattr(tool_actions, action), "execute", _checked)
    patches.wrap(tool_actions.ComputerAction, "_execute_action_and_capture", _computer)
    patches.wrap(tool_actions, "resolve_computer", _late_computer)


class _Executor:
    """Hands out what an instance has under a name, with its calls recorded."""

    def __init__(self, name: str, default: object, recorded: Callable[[Any, Any], Any]) -> None:
        self._name = name
        self._default = default
        self._recorded = recorded

    def __get__(self, tool: Any, owner: type) -> Any:
        if tool is None:
            if self._default is _ABSENT:
                raise AttributeError(self._name)
            return self._default
        own = vars(tool).get(self._name, self._default)
        if own is None or not in_session() or inside_tool.get():
            return own
        return self._recorded(tool, own)

    def __set__(self, tool: Any, value: Any) -> None:
        vars(tool)[self._name] = getattr(value, _ORIGINAL, value)


def _replace(patches: Patches, owner: type, name: str, recorded: Callable[[Any, Any], Any]) -> None:
    default = vars(owner).get(name, _ABSENT)
    setattr(owner, name, _Executor(name, default, recorded))
    patches.at_undo(
        partial(delattr, owner, name)
        if default is _ABSENT
        else partial(setattr, owner, name, default)
    )


def _original(recorded: Callable[..., Any], original: object) -> Callable[..., Any]:
    setattr(recorded, _ORIGINAL, original)
    return recorded


def _shell(tool: Any, executor: Any) -> Callable[..., Any]:
    async def execute(request: Any) -> Any:
        action = dataclasses.asdict(request.data.action)

        async def run(**now: Any) -> Any:
            changed = dataclasses.replace(request.data.action, **now)
            data = dataclasses.replace(request.data, action=changed)
            return await _awaited(executor(dataclasses.replace(request, data=data)))

        return await call(tool.name, action, run, effect="write")

    return _original(execute, executor)


def _local_shell(tool: Any, executor: Any) -> Callable[..., Any]:
    async def execute(request: Any) -> Any:
        action = request.data.action

        async def run(**now: Any) -> Any:
            data = request.data.model_copy(update={"action": action.model_copy(update=now)})
            return await _awaited(executor(dataclasses.replace(request, data=data)))

        return await call(tool.name, action.model_dump(mode="json"), run, effect="write")

    return _original(execute, executor)


def _custom(tool: Any, invoke: Any) -> Callable[..., Any]:
    async def on_invoke_tool(context: Any, text: str) -> Any:
        async def run(input: str) -> Any:  # noqa: A002 - the name on the tape
            return await _awaited(invoke(context, input))

        return await call(tool.name, {"input": text}, run, effect="write", function=invoke)

    return _original(on_invoke_tool, invoke)


class _Editor:
    """The editor of a tool that applies patches, with its calls recorded."""

    def __init__(self, tool: Any, editor: Any) -> None:
        self._tool = tool
        self._tracefork_original = editor

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._tracefork_original, name)
        return partial(self._edit, work) if name.endswith("_file") else work

    async def _edit(self, work: Callable[..., Any], operation: Any) -> Any:
        fields = dataclasses.fields(operation)
        told = {it.name: getattr(operation, it.name) for it in fields if it.name != _CONTEXT}

        async def run(**now: Any) -> Any:
            return await _awaited(work(dataclasses.replace(operation, **now)))

        return await call(self._tool.name, told, run, effect="write")


def _checked(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Raise an error of ours: the SDK tells the model what an executor raises."""

    @wraps(execute)
    async def executed(**options: Any) -> Any:
        item = await execute(**options)
        misses.check()
        return item

    return executed


class _Late:
    """A computer that is made when a live call needs it: a replay needs none."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    async def get(self) -> Any:
        return await self._make()


def _late_computer(resolve: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(resolve)
    async def resolved(*, tool: Any, run_context: Any) -> Any:
        make = partial(resolve, tool=tool, run_context=run_context)
        return await make() if answering_tape() is None else _Late(make)

    return resolved


def _computer(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    async def executed(computer: Any, tool_call: Any) -> Any:
        async def run(**_: Any) -> Any:
            real = await computer.get() if isinstance(computer, _Late) else computer
            return await execute(real, tool_call)

        if not in_session():
            return await run()
        payload = tool_actions.ComputerAction._get_trace_input_payload(tool_call)  # noqa: SLF001
        return await call("computer", {"actions": payload}, run, effect="write")

    return executed


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
