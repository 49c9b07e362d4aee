"""Replays: Claude Code does not start, and everything comes back as recorded."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    CLINotFoundError,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

import tracefork_core as tracefork

Options = Callable[..., Any]
Talk = Callable[..., list[Any]]
BASH = '@call Bash {"command": "echo ran >> ran.txt"}\n@then\n@say done'
BOOK = '@call mcp__desk__book {"to": "Rome"}\n@then\n@say booked'
NOWHERE = "/nowhere/claude"


def test_a_tool_of_claude_code_does_not_run_again(
    twice: Any, options: Options, talk: Talk, home: Path
) -> None:
    """The replay has no server, and no program that it could start."""
    program: list[str | None] = [None, NOWHERE]

    def run() -> list[Any]:
        given = options(allowed_tools=["Bash"], cli_path=program.pop(0))
        return talk(given, BASH, "@say and again")

    recorded, again = twice(run)
    assert (home / "ran.txt").read_text() == "ran\n"
    assert again == recorded
    texts = [one.result or "" for one in again if isinstance(one, ResultMessage)]
    assert [text.split()[0] for text in texts] == ["done", "and"]


def test_a_replay_does_not_write_the_files_of_a_tool(
    tape: Path, options: Options, talk: Talk, home: Path
) -> None:
    """Code of the agent that reads them finds what is there now."""
    with tracefork.record(tape):
        talk(options(allowed_tools=["Bash"]), BASH)
    (home / "ran.txt").unlink()
    with tracefork.replay(tape):
        talk(options(allowed_tools=["Bash"]), BASH)
    assert not (home / "ran.txt").exists()


def test_a_missing_program_is_missing_in_a_replay(tape: Path, options: Options, talk: Talk) -> None:
    """The error is that of the SDK, although the program is there now."""
    with tracefork.record(tape), pytest.raises(CLINotFoundError, match=NOWHERE):
        talk(options(cli_path=NOWHERE), "@say hi")
    with tracefork.replay(tape), pytest.raises(CLINotFoundError, match=NOWHERE):
        talk(options(), "@say hi")


def test_a_failed_turn_fails_again(twice: Any, options: Options, talk: Talk) -> None:
    """The provider refuses, and Claude Code reports it."""
    recorded, again = twice(lambda: talk(options(), "@fail 400 50"))
    assert again == recorded
    assert again[-1].is_error
    assert "400" in again[-1].result


def test_without_a_session_the_program_is_needed(options: Options, talk: Talk) -> None:
    """The control of the test above."""
    with pytest.raises(CLINotFoundError):
        talk(options(cli_path=NOWHERE), BASH)


def test_a_tool_of_the_process_runs_once(twice: Any, options: Options, talk: Talk) -> None:
    """Its result comes from the tape. The server in the process lists its tools again."""
    booked: list[str] = []

    @tool("book", "Book a trip", {"to": str})
    async def book(arguments: Any) -> dict[str, Any]:
        booked.append(arguments["to"])
        return {"content": [{"type": "text", "text": f"trip {len(booked)}"}]}

    def run() -> list[Any]:
        servers = {"desk": create_sdk_mcp_server("desk", tools=[book])}
        return talk(options(mcp_servers=servers, allowed_tools=["mcp__desk__book"]), BOOK)

    recorded, again = twice(run)
    assert booked == ["Rome"]
    assert again == recorded
    assert "trip 1" in repr(again)


def test_hooks_and_permissions_are_asked_again(twice: Any, options: Options, talk: Talk) -> None:
    """They are code of the agent: what they refused stays refused."""
    asked: list[str] = []

    async def hook(given: Any, _: str | None, __: Any) -> Any:
        asked.append(given["hook_event_name"])
        return {}

    async def may(name: str, _: Any, __: Any) -> Any:
        asked.append(name)
        return PermissionResultDeny(message="not today")

    def run() -> list[Any]:
        asked.clear()
        hooks: Any = {
            "PreToolUse": [HookMatcher(hooks=[hook])],
            "Stop": [HookMatcher(hooks=[hook])],
        }
        messages = talk(options(hooks=hooks, can_use_tool=may), BASH)
        return [*asked, *messages]

    recorded, again = twice(run)
    assert again == recorded
    assert again[:3] == ["PreToolUse", "Bash", "Stop"]
    assert "not today" in repr(again)


@pytest.mark.parametrize("partial", [False, True])
def test_a_query_replays(twice: Any, options: Options, partial: bool) -> None:
    """`query` ends when Claude Code ends, in the replay too."""

    async def run() -> list[Any]:
        given = options(include_partial_messages=partial)
        return [message async for message in query(prompt="@say hello there", options=given)]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    assert isinstance(again[-1], ResultMessage)
    kinds = {type(message).__name__ for message in again}
    assert ("StreamEvent" in kinds) == partial


def test_prompts_from_a_stream_replay(twice: Any, options: Options) -> None:
    """Several prompts are written before the first is answered."""

    async def prompts() -> Any:
        for text in ("@say one", "@say two"):
            message = {"role": "user", "content": text}
            yield {"type": "user", "message": message, "parent_tool_use_id": None}

    async def run() -> list[Any]:
        return [message async for message in query(prompt=prompts(), options=options())]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    assert any(isinstance(message, ResultMessage) for message in again)


def test_requests_of_the_client_replay(twice: Any, options: Options) -> None:
    """The client changes the mode and the model between prompts, and asks for what it uses."""

    async def run() -> list[Any]:
        async with ClaudeSDKClient(options()) as client:
            await client.set_permission_mode("plan")
            await client.set_model("claude-haiku-4-5")
            await client.query("@say hi")
            messages: list[Any] = [one async for one in client.receive_response()]
            return [*messages, await client.get_context_usage(), await client.get_server_info()]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    models = {one.model for one in again if isinstance(one, AssistantMessage)}
    assert models == {"claude-haiku-4-5"}


def test_an_interrupt_replays(twice: Any, options: Options) -> None:
    """The turn ends where it was interrupted."""

    async def run() -> list[Any]:
        async with ClaudeSDKClient(options()) as client:
            await client.query("@slow 30\n@say never")
            async for _ in client.receive_messages():
                break
            await client.interrupt()
            return [message async for message in client.receive_response()]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    assert "never" not in [getattr(message, "result", None) for message in again]


def test_two_clients_at_once_replay(twice: Any, options: Options) -> None:
    """Each gets the answers to its own prompts."""

    async def ask(word: str) -> Any:
        async with ClaudeSDKClient(options()) as client:
            await client.query(f"@say {word}")
            return [message async for message in client.receive_response()][-1]

    async def run() -> list[Any]:
        return list(await asyncio.gather(ask("left"), ask("right")))

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded
    assert [message.result.split()[0] for message in again] == ["left", "right"]


def test_a_client_that_leaves_in_the_middle_replays(twice: Any, options: Options) -> None:
    """Claude Code is stopped in the recording, and the replay stops at the same message."""

    async def run() -> Any:
        async with ClaudeSDKClient(options()) as client:
            await client.query("@slow 30\n@say never")
            return await anext(client.receive_messages())

    recorded, again = twice(lambda: asyncio.run(run()))
    assert again == recorded


def test_another_prompt_diverges(tape: Path, options: Options, talk: Talk) -> None:
    """The error names the place, and nothing is asked."""
    with tracefork.record(tape):
        talk(options(), "@say yes")
    with pytest.raises(tracefork.DivergenceError, match="/message/content"):
        with tracefork.replay(tape):
            talk(options(), "@say no")


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"model": "claude-haiku-4-5"}, "/options/--model"),
        ({"system_prompt": "You run two desks."}, "/options/--system-prompt"),
        ({"allowed_tools": ["Read"]}, "/options/--allowedTools"),
    ],
)
def test_another_option_diverges(
    tape: Path, options: Options, talk: Talk, changed: Any, place: str
) -> None:
    """Options decide what Claude Code does, although the SDK passes them on a command line."""
    with tracefork.record(tape):
        talk(options(), "@say yes")
    with pytest.raises(tracefork.DivergenceError, match=place):
        with tracefork.replay(tape):
            talk(options(**changed), "@say yes")


def test_another_permission_diverges(
    tape: Path, options: Options, talk: Talk, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A callback that decides differently is a difference of the run, reported once."""
    answers: list[Any] = [PermissionResultDeny(message="no"), PermissionResultAllow()]

    async def may(*_: Any) -> Any:
        return answers.pop(0)

    with tracefork.record(tape):
        talk(options(can_use_tool=may), BASH)
    with pytest.raises(tracefork.DivergenceError, match="permission claude-code:Bash"):
        with tracefork.replay(tape):
            talk(options(can_use_tool=may), BASH)
    assert not (home / "ran.txt").exists()
    gc.collect()
    assert "never retrieved" not in caplog.text
