"""State that a run gives away and takes back: saved runs, responses and conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Runner, RunState, function_tool

import tracefork_core as tracefork
from tracefork_core import UsageError
from tracefork_testkit import ProviderServer


@pytest.mark.parametrize("approved", [True, False])
def test_a_run_that_was_saved_and_resumed_replays(
    agent: Callable[..., Any], twice: Callable[..., Any], approved: bool
) -> None:
    """What a person decided is in the program, and the tool runs in the recording only."""
    deleted: list[str] = []

    @function_tool(needs_approval=True)
    def delete(name: str) -> str:
        deleted.append(name)
        return f"deleted {name} ({len(deleted)})"

    async def run() -> str:
        helper = agent("Helper", '@call delete {"name": "x"}\n@then\n@say done', tools=[delete])
        result = await Runner.run(helper, "go")
        state = await RunState.from_string(helper, result.to_state().to_string())
        (asked,) = state.get_interruptions()
        if approved:
            state.approve(asked)
        else:
            state.reject(asked)
        return str((await Runner.run(helper, state)).final_output)

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert len(deleted) == approved


def test_a_chain_of_responses_replays_and_is_not_forked_by_an_answer(
    agent: Callable[..., Any], server: ProviderServer, tape: Path
) -> None:
    """The provider does not know the answer of the fork; to change the question works."""

    async def run() -> str:
        helper = agent("Helper")
        first = await Runner.run(helper, "one")
        before = first.last_response_id
        return str((await Runner.run(helper, "two", previous_response_id=before)).final_output)

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded
    with (
        pytest.raises(UsageError, match="continues the response to exchange 0 by its id"),
        tracefork.fork(tape, at=0, replace="another"),
    ):
        asyncio.run(run())
    with tracefork.fork(tape, at=0, replace=tracefork.Edit(prompt="three")):
        asyncio.run(run())
    assert len(server.requests) == 4


def test_a_conversation_of_the_provider_replays_and_is_not_forked(
    agent: Callable[..., Any], tape: Path
) -> None:
    """The provider keeps what the recording said behind the fork point."""

    async def run() -> str:
        helper = agent("Helper")
        await Runner.run(helper, "one", conversation_id="conv_1")
        return str((await Runner.run(helper, "two", conversation_id="conv_1")).final_output)

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded
    with (
        pytest.raises(UsageError, match="conversation conv_1 has what the recording added"),
        tracefork.fork(tape, at=1),
    ):
        asyncio.run(run())
