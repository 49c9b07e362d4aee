"""Forks: what is live connects, what may write is refused, and answers can be given as texts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.stdio import stdio_client

import tracefork_core as tracefork
import tracefork_mcp
from tracefork_mcp import effects

from .conftest import texts

Counted = Callable[[], list[str]]
CALLS = [("echo", {"a": 1}), ("note", {"b": 2}), ("look", {"c": 3})]


async def use(server: Any) -> list[Any]:
    """Call tools one after the other."""
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.list_tools()
        results = [await session.call_tool(name, arguments) for name, arguments in CALLS]
    return [text for result in results for text in texts(result)]


@pytest.fixture
def recorded(tape: Path, plain: Any) -> list[str]:
    """Record the calls."""
    with tracefork.record(tape):
        return asyncio.run(use(plain))


@pytest.fixture(autouse=True)
def _nothing_declared() -> Iterator[None]:
    effects._declared.clear()
    yield
    effects._declared.clear()


def number(exchanges: Any, tool: str) -> int:
    """Return the number of the call of a tool."""
    return int(exchanges().index(("tools/call", f"mcp:plain/{tool}")))


@pytest.mark.parametrize("tool", [name for name, _ in CALLS])
def test_a_fork_does_not_repeat_a_call(
    tape: Path, plain: Any, recorded: Any, counted: Counted, exchanges: Any, tool: str
) -> None:
    """Not even of a tool whose server says that it only reads: the user has not declared it."""
    before = counted()
    with pytest.raises(tracefork.WriteError, match=f"mcp:plain/{tool}"):
        with tracefork.fork(tape, number(exchanges, tool)):
            asyncio.run(use(plain))
    assert counted() == before


def test_a_fork_starts_the_server_at_its_first_live_call(
    tape: Path, plain: Any, recorded: Any, counted: Counted, exchanges: Any
) -> None:
    """It has heard the handshake then, and none of the calls that the tape answered."""
    before = len(counted())
    with tracefork.fork(tape, number(exchanges, "look"), writes="allow") as forked:
        assert asyncio.run(use(plain)) == recorded
    assert counted()[before:] == ["start", "call look"]
    assert forked.live == 1


def test_a_replay_of_a_branch_starts_nothing(
    tape: Path, plain: Any, recorded: Any, counted: Counted, exchanges: Any, tmp_path: Path
) -> None:
    """A branch is a tape like any other."""
    branch = tmp_path / "branch.tape"
    at = number(exchanges, "note")
    with tracefork.fork(tape, at, writes="allow", to=branch):
        asyncio.run(use(plain))
    before = counted()
    with tracefork.replay(branch, strict=True) as replayed:
        assert asyncio.run(use(plain)) == recorded
    assert replayed.digest == replayed.tape.digest
    assert counted() == before


@pytest.mark.parametrize(
    ("tools", "effect", "allowed"),
    [
        ("plain/look", "read", {"look"}),
        ("plain/*", "hint", {"look"}),
        ("plain/*", "read", {"look", "note", "echo"}),
        ("other/*", "read", set()),
    ],
)
def test_a_tool_that_is_declared_to_read_runs_again(
    tape: Path, plain: Any, exchanges: Any, tools: str, effect: Any, allowed: set[str]
) -> None:
    """The hint of the server counts once the user says so; `note` says that it writes."""
    tracefork_mcp.declare(tools, effect)
    with tracefork.record(tape):
        asyncio.run(use(plain))
    ran = set()
    for name, _ in CALLS:
        branch = tape.with_name(f"{name}.tape")
        try:
            with tracefork.fork(tape, number(exchanges, name), to=branch, writes="refuse"):
                asyncio.run(use(plain))
        except tracefork.WriteError as error:
            if f"mcp:plain/{name}" in str(error):
                continue
        ran.add(name)
    assert ran == allowed


def test_a_fork_names_the_tool_that_reads(
    tape: Path, plain: Any, recorded: Any, counted: Counted, exchanges: Any
) -> None:
    """The way without a line of code; the refusal says it."""
    at = number(exchanges, "look")
    with pytest.raises(tracefork.WriteError, match="--reads look"):
        with tracefork.fork(tape, at):
            asyncio.run(use(plain))
    with tracefork.fork(tape, at, reads=["plain/look"]):
        assert asyncio.run(use(plain)) == recorded
    assert counted()[-1] == "call look"


def test_a_text_is_given_as_the_result_of_a_tool(
    tape: Path, plain: Any, recorded: Any, counted: Counted, exchanges: Any
) -> None:
    """The client gets it in the form of its protocol, and the server is not started."""
    before = counted()
    at = number(exchanges, "look")
    with tracefork.fork(tape, at, replace="another answer"):
        assert asyncio.run(use(plain)) == [*recorded[:-1], "another answer"]
    assert counted() == before


def test_an_edit_changes_the_arguments_that_are_sent(
    tape: Path, plain: Any, recorded: Any, exchanges: Any
) -> None:
    """The server gets them, and the client its answer to them."""
    edit = tracefork.Edit(values={"/arguments/c": 4})
    with tracefork.fork(tape, number(exchanges, "look"), replace=edit, writes="allow"):
        assert asyncio.run(use(plain)) == [*recorded[:-1], '{"c": 4}']


def test_show_reads_calls_as_calls(tape: Path, plain: Any, recorded: Any) -> None:
    """`tracefork show` names server, tool and arguments, and the text of the result."""
    shown = subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", "show", str(tape)],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200", "PATH": "/usr/bin"},
    )
    assert 'plain ▸ echo {"a":1}' in shown.stdout
    assert '→ {"a": 1}' in shown.stdout
