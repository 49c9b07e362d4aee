"""A fork changes one step of an agent, and the rest of the run is live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

import tracefork_core as tracefork
from tracefork_core import Edit, Fail, Replace
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

Call = Callable[..., Any]


def answer(request: ModelRequest) -> Reply:
    """Say which model was asked what, or repeat what an inner agent said."""
    if "You are inner" in request.system or "You are changed" in request.system:
        return Reply(f"{request.model} as {request.system}")
    if request.tool_results:
        return Reply(f"desk: {request.tool_results[-1].text}")
    return Reply(tool_calls=[ToolCall("ask", {})])


@pytest.fixture
def desk(agent_at: Call, tape: Path) -> Iterator[Any]:
    """A recorded agent that runs another one, and repeats what that said."""
    with ProviderServer(answer) as server:
        agent = agent_at(server.url)
        inner, outer = agent("inner", "You are inner."), agent("desk", "You are desk.")

        @outer.tool_plain
        async def ask() -> str:
            """Ask the inner agent."""
            return str((await inner.run("Go on.")).output)

        with tracefork.record(tape):
            assert outer.run_sync("Go on.").output == "desk: gpt-5-mini as You are inner."
        yield outer


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Replace(text="Nothing."), "desk: Nothing."),
        (Edit(model="gpt-5-nano"), "desk: gpt-5-nano as You are inner."),
        (Edit(system="You are changed."), "desk: gpt-5-mini as You are changed."),
    ],
    ids=["text", "model", "system"],
)
def test_a_fork_at_an_inner_agent_changes_what_the_outer_one_says(
    desk: Any, tape: Path, change: Any, said: str
) -> None:
    """What comes before it is answered from the tape."""
    with tracefork.fork(tape, "agent:inner", change):
        assert desk.run_sync("Go on.").output == said


def test_a_failed_model_reaches_the_program_as_it_would(desk: Any, tape: Path) -> None:
    """pydantic-ai makes its own error of the status."""
    with (
        pytest.raises(ModelHTTPError, match="status_code: 503"),
        tracefork.fork(tape, "agent:inner", Fail(status=503)),
    ):
        desk.run_sync("Go on.")


def test_a_fork_replaces_the_answer_of_the_outer_agent(desk: Any, tape: Path) -> None:
    """`:answer` is its last request, which another agent's are not a part of."""
    with tracefork.fork(tape, "agent:desk:answer", Replace(text="Bye.")):
        assert desk.run_sync("Go on.").output == "Bye."
