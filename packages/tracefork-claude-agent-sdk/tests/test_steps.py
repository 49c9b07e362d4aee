"""Steps: turns, tools, subagents, hooks and permissions, as Claude Code reports them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    HookMatcher,
    PermissionResultAllow,
    create_sdk_mcp_server,
    query,
    tool,
)

import tracefork_core as tracefork

Options = Callable[..., Any]
Talk = Callable[..., list[Any]]


def steps_of(tape: Path) -> list[str]:
    """Return the path of each step."""
    with tracefork.Tape.open(tape) as opened:
        named = {step.id: step for step in opened.steps}

    def path(step: Any) -> str:
        own = f"{step.kind}:{step.name}"
        return f"{path(named[step.parent])} ▸ {own}" if step.parent else own

    return [path(step) for step in named.values()]


def test_a_tool_is_a_step_with_its_hook_and_its_permission(
    twice: Any, tape: Path, options: Options, talk: Talk, paths: Any
) -> None:
    """What the tool of the process asks for is in its step."""

    @tool("book", "Book a trip", {"to": str})
    async def book(_: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "a trip"}]}

    async def hook(*_: Any) -> Any:
        return {}

    async def may(*_: Any) -> Any:
        return PermissionResultAllow()

    def run() -> list[Any]:
        servers = {"desk": create_sdk_mcp_server("desk", tools=[book])}
        hooks: Any = {"PreToolUse": [HookMatcher(hooks=[hook])]}
        given = options(mcp_servers=servers, can_use_tool=may, hooks=hooks)
        return talk(given, '@call mcp__desk__book {"to": "Rome"}\n@then\n@say booked')

    twice(run)
    within = "turn:claude ▸ tool:desk.book"
    assert steps_of(tape) == [
        "turn:claude",
        within,
        f"{within} ▸ callback:PreToolUse desk.book",
        f"{within} ▸ guardrail:can_use_tool desk.book",
    ]
    with tracefork.Tape.open(tape) as opened:
        (call,) = (one.n for one in opened.exchanges if one.url == "tool:desk/book")
    assert paths()[call] == within


def test_the_tools_of_a_subagent_are_in_its_step(
    twice: Any, tape: Path, options: Options, home: Path
) -> None:
    """The subagent is a step of the kind agent. It works in the background, so `query` waits."""
    asked = '{"description": "a poem", "prompt": "PROMPT", "subagent_type": "poet"}'
    poem = '@call Bash {\\"command\\": \\"echo poem >> ran.txt\\"}\\n@then\\n@say roses'
    prompt = f"@call Task {asked}\n@then\n@say done".replace("PROMPT", poem)

    async def run() -> list[Any]:
        agents = {"poet": AgentDefinition(description="Writes poems", prompt="You are a poet.")}
        given = options(agents=agents, allowed_tools=["Task", "Bash"])
        return [message async for message in query(prompt=prompt, options=given)]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    assert steps_of(tape) == [
        "turn:claude",
        "turn:claude ▸ agent:poet",
        "turn:claude ▸ agent:poet ▸ tool:Bash",
    ]
    assert (home / "ran.txt").read_text() == "poem\n"


def test_a_tool_that_fails_is_a_step_that_fails(
    twice: Any, tape: Path, options: Options, talk: Talk
) -> None:
    """The step has the error that Claude Code reports."""
    prompt = '@call Read {"file_path": "/no"}\n@then\n@say no'
    twice(lambda: talk(options(allowed_tools=["Read"]), prompt))
    with tracefork.Tape.open(tape) as opened:
        (step,) = (step for step in opened.steps if step.kind == "tool")
    assert step.name == "Read"
    assert "not exist" in (step.error or "")
