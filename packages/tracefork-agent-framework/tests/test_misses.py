"""A divergence ends the run at once, whatever middleware, tools and workflows do with errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FunctionInvocationContext, function_middleware
from agent_framework.orchestrations import ConcurrentBuilder, GroupChatBuilder, SequentialBuilder

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
Make = Callable[[Call, str], Any]


def model(agent: Call, said: str) -> Any:
    return agent("helper", f"@say {said}")


def tool(agent: Call, said: str) -> Any:
    """Middleware changes the argument, so that it differs at the tool and not before."""

    def work(city: str) -> str:
        return city

    @function_middleware
    async def change(context: FunctionInvocationContext, call_next: Any) -> None:
        arguments: Any = context.arguments
        arguments["city"] = said
        try:
            await call_next()
        except Exception:  # It would hide a divergence.
            context.result = "Hm."

    words = '@call work {"city": "Rome"}\n@then\n@say Done.'
    return agent("helper", words, tools=[work], middleware=[change])


def agent_tool(agent: Call, said: str) -> Any:
    helper = agent("inner", f"@say {said}", description="Helps.").as_tool()
    return agent("helper", '@call inner {"task": "Hm."}\n@then\n@say Done.', tools=[helper])


def sequential(agent: Call, said: str) -> Any:
    participants = [agent("writer", "@say A."), agent("editor", f"@say {said}")]
    return SequentialBuilder(participants=participants).build()


def concurrent(agent: Call, said: str) -> Any:
    participants = [agent("slow", "@slow 0.1\n@say A."), agent("fast", f"@say {said}")]
    return ConcurrentBuilder(participants=participants).build()


def group_chat(agent: Call, said: str) -> Any:
    """A model selects the next agent: the framework retries what it cannot read."""
    manager = agent("manager", f"@say {said}")
    participants = [agent("ann", "@say A."), agent("bob", "@say B.")]
    builder = GroupChatBuilder(
        participants=participants, selection_func=lambda _: "ann", max_rounds=2
    )
    return SequentialBuilder(participants=[manager, builder.build().as_agent("chat")]).build()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("make", [model, tool, agent_tool, sequential, concurrent, group_chat])
def test_a_divergence_ends_the_run_at_once(
    agent: Call, tape: Path, server: ProviderServer, make: Make, stream: bool
) -> None:
    """It is neither retried nor told to a model, and the run raises it itself."""

    async def run(said: str) -> None:
        root = make(agent, said)
        if not stream:
            await root.run("Go on.")
            return
        async for _ in root.run("Go on.", stream=True):
            pass

    with tracefork.record(tape):
        asyncio.run(run("One"))
    asked = len(server.requests)

    def diverge() -> None:
        with tracefork.replay(tape):
            try:
                asyncio.run(asyncio.wait_for(run("Two"), 5))
            except Exception as error:
                ended.append(type(error))  # The session would raise its own error instead.
                raise

    ended: list[type] = []
    with pytest.raises(tracefork.DivergenceError):
        diverge()
    assert ended == [tracefork.DivergenceError]
    assert len(server.requests) == asked
