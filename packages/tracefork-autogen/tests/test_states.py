"""A conversation goes on from the state that a recorded team had: with another question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.teams import RoundRobinGroupChat

import tracefork_core as tracefork
from tracefork_autogen import fork_state
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


def team_of(agent: Call) -> Any:
    return RoundRobinGroupChat([agent("writer"), agent("editor")], max_turns=2)


async def converse(runner: Any, *tasks: str) -> None:
    for task in tasks:
        await runner.run(task=task)


@pytest.fixture
def recorded(agent: Call, tape: Path) -> Path:
    """A run in which a team and an agent were asked twice."""

    async def run() -> None:
        await converse(team_of(agent), "@say One.", "@say Two.")
        await converse(agent("clerk"), "@say Three.")

    with tracefork.record(tape):
        asyncio.run(run())
    return tape


def asked(server: ProviderServer) -> Any:
    """Return the messages of the last question."""
    return json.loads(server.requests[-1].body)["messages"]


@pytest.mark.parametrize("at", [1, 2, None])
def test_a_new_team_goes_on_from_the_end_of_a_run(
    agent: Call, server: ProviderServer, recorded: Path, at: int | None
) -> None:
    """It asks its models what the recorded one would have asked them."""

    async def run() -> None:
        team = team_of(agent)
        name = team.name
        await team.load_state(fork_state(recorded, at=at, of=name))
        await team.run(task="@say Else.")

    asyncio.run(run())
    said = [message["content"] for message in asked(server) if message["role"] == "user"]
    tasks = [text for text in said if text.startswith("@say")]
    assert tasks == ["@say One.", *["@say Two."][: 0 if at == 1 else 1], "@say Else."]


def test_the_tape_is_as_exact_as_without_states(agent: Call, recorded: Path) -> None:
    """A replay notes nothing, and a fork has the states of its own run."""

    async def run() -> None:
        await converse(team_of(agent), "@say One.", "@say Two.")
        await converse(agent("clerk"), "@say Three.")

    with tracefork.replay(recorded, strict=True):
        asyncio.run(run())
    fork = recorded.with_name("fork.tape")
    with tracefork.fork(recorded, "agent:editor", tracefork.Replace(text="Never."), to=fork):
        asyncio.run(run())
    assert "Never." in str(fork_state(fork, at=1, of=team_of(agent).name))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "several teams and agents"),
        ({"of": "Zoe"}, "no team or agent Zoe"),
        ({"of": "clerk", "at": 2}, "at must be between 1 and 1"),
    ],
)
def test_a_state_that_is_not_there_is_refused(
    recorded: Path, options: dict[str, Any], message: str
) -> None:
    """The error says which there are."""
    with pytest.raises(tracefork.UsageError, match=message):
        fork_state(recorded, **options)


def test_a_tape_without_runs_of_agents_has_no_state(client: Call, tape: Path) -> None:
    """A client alone has none."""
    from autogen_core.models import UserMessage

    with tracefork.record(tape):
        asyncio.run(client().create([UserMessage(content="Hi.", source="user")]))
    with pytest.raises(tracefork.UsageError, match="no state of a team or an agent"):
        fork_state(tape)
