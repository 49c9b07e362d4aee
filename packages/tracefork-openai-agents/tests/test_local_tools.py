"""Tools that act on this machine run once: no replay runs a shell or changes a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    Computer,
    ComputerTool,
    CustomTool,
    HostedMCPTool,
    LocalShellTool,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ShellResult,
    ShellTool,
    WebSearchTool,
)
from agents.editor import ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput
from openai import AsyncOpenAI

import tracefork_core as tracefork

from .items import ItemsServer, said, serving

Call = Callable[..., Any]
ran: list[str] = []


@pytest.fixture
def items() -> Iterator[ItemsServer]:
    """A server whose answers a test sets."""
    ran.clear()
    with serving() as server:
        yield server


async def shell(request: Any) -> ShellResult:
    ran.append(" ".join(request.data.action.commands))
    outcome = ShellCallOutcome(type="exit", exit_code=0)
    return ShellResult([ShellCommandOutput(stdout=f"ran {len(ran)}", outcome=outcome)])


def local_shell(request: Any) -> str:
    ran.append(" ".join(request.data.action.command))
    return f"ran {len(ran)}"


async def custom(context: Any, text: str) -> str:
    ran.append(text)
    return f"ran {len(ran)}"


class Editor:
    """Notes the operations instead of changing files."""

    def create_file(self, operation: Any) -> ApplyPatchResult:
        ran.append(operation.path)
        return ApplyPatchResult(status="completed", output=f"ran {len(ran)}")

    update_file = delete_file = create_file


class Screen(Computer):
    """A computer of which only screenshots are taken."""

    environment = "linux"
    dimensions = (10, 10)

    def screenshot(self) -> str:
        ran.append("screenshot")
        return f"cmFu{len(ran)}"

    def click(self, *_: Any, **__: Any) -> None: ...
    def double_click(self, *_: Any, **__: Any) -> None: ...
    def scroll(self, *_: Any, **__: Any) -> None: ...
    def type(self, *_: Any, **__: Any) -> None: ...
    def wait(self, *_: Any, **__: Any) -> None: ...
    def move(self, *_: Any, **__: Any) -> None: ...
    def keypress(self, *_: Any, **__: Any) -> None: ...
    def drag(self, *_: Any, **__: Any) -> None: ...


_ACTION = {"type": "exec", "command": ["rm", "-r", "it"], "env": {}}
_PATCH = {"type": "create_file", "path": "it", "diff": "+hello"}
TOOLS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "shell": (
        ShellTool(executor=shell),
        {"type": "shell_call", "action": {"commands": ["rm -r it"]}, "status": "completed"},
        "rm -r it",
    ),
    "local_shell": (
        LocalShellTool(executor=local_shell),
        {"type": "local_shell_call", "action": _ACTION, "status": "completed"},
        "rm -r it",
    ),
    "grep": (
        CustomTool(name="grep", description="", on_invoke_tool=custom),
        {"type": "custom_tool_call", "name": "grep", "input": "it"},
        "it",
    ),
    "apply_patch": (
        ApplyPatchTool(editor=Editor()),
        {"type": "apply_patch_call", "operation": _PATCH, "status": "completed"},
        "it",
    ),
    "computer": (
        ComputerTool(computer=Screen()),
        {
            "type": "computer_call",
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        "screenshot",
    ),
}


def run(items: ItemsServer, tool: Any, **config: Any) -> str:
    model = OpenAIResponsesModel("gpt-5-mini", AsyncOpenAI(base_url=items.url, api_key="none"))
    agent = Agent(name="Helper", model=model, tools=[tool])
    result = asyncio.run(Runner.run(agent, "Go on.", run_config=RunConfig(**config)))
    return str(result.to_input_list()[-2:])


@pytest.mark.parametrize("untraced", [False, True])
@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_on_this_machine_runs_once(
    items: ItemsServer, tape: Path, paths: Call, name: str, untraced: bool
) -> None:
    """A recording runs it, a replay does not, and both give the model the same."""
    tool, item, did = TOOLS[name]
    items.answers = [[{"id": "it_1", "call_id": "call_1", **item}], [said("Done.")]]
    with tracefork.record(tape):
        recorded = run(items, tool, tracing_disabled=untraced)
    assert ran == [did]
    items.stop()
    with tracefork.replay(tape, strict=True) as replayed:
        again = run(items, tool, tracing_disabled=untraced)
    assert replayed.digest == replayed.tape.digest
    assert again == recorded
    assert ran == [did]
    assert paths()[1].endswith(f"agent:Helper ▸ turn:turn 1 ▸ tool:{name}")


@pytest.mark.parametrize("name", TOOLS)
def test_a_fork_runs_no_tool_on_this_machine_unless_allowed(
    items: ItemsServer, tape: Path, name: str
) -> None:
    """Each of them may change something, so a fork refuses it, and runs it if that is allowed."""
    tool, item, did = TOOLS[name]
    items.answers = [[{"id": "it_1", "call_id": "call_1", **item}], [said("Done.")]]
    with tracefork.record(tape):
        run(items, tool)
    with pytest.raises(tracefork.TraceforkError, match="write"), tracefork.fork(tape, 1):
        run(items, tool)
    assert ran == [did]
    with tracefork.fork(tape, 1, writes="allow"):
        run(items, tool)
    assert ran == [did, did]


def test_tools_are_the_users_own_after_a_session(items: ItemsServer, tape: Path) -> None:
    """Outside a session nothing stands in front of an executor."""
    tool = ShellTool(executor=shell)
    with tracefork.record(tape):
        assert tool.executor is not shell
        made_inside = ShellTool(executor=tool.executor)
    assert tool.executor is shell
    assert made_inside.executor is shell


def test_hosted_tools_are_steps(items: ItemsServer, tape: Path) -> None:
    """The answer of the model tells which tools ran at the provider."""
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    searched["action"] = {"type": "search", "query": "weather"}  # type: ignore[assignment]
    asked = {"type": "mcp_call", "id": "mcp_1", "server_label": "github", "name": "search"}
    items.answers = [[searched, {**asked, "arguments": "{}"}, said("Done.")]]
    hosted = HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": "github",
            "server_url": "https://example.com",
            "require_approval": "never",
        }
    )
    model = OpenAIResponsesModel("gpt-5-mini", AsyncOpenAI(base_url=items.url, api_key="none"))
    agent = Agent(name="Helper", model=model, tools=[WebSearchTool(), hosted])
    with tracefork.record(tape):
        asyncio.run(Runner.run(agent, "Go on."))
    with tracefork.Tape.open(tape) as opened:
        steps = [(step.kind, step.name) for step in opened.steps]
        assert steps[-2:] == [("tool", "web_search"), ("mcp", "github.search")]
        assert len(opened.exchanges) == 1
