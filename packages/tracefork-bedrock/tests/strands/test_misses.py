"""A divergence ends the run at once, though Strands tells models about the errors of tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import AfterModelCallEvent, AfterToolCallEvent
from strands.multiagent import GraphBuilder, Swarm

import tracefork_core as tracefork

Call = Callable[..., Any]


def asking(agent: Call, word: str, **options: Any) -> Agent:
    """Make an agent whose tool gets a word from the program, so a model cannot know it."""

    @tool
    def look_up() -> str:
        """Look it up."""
        return str(agent("expert", f"@say {word}")("What is it?"))

    from tracefork_bedrock.strands import leave_live

    words = "@call look_up {}\n@then\n@say Done."
    return agent("Helper", words, tools=[leave_live(look_up)], **options)


@contextmanager
def diverges() -> Iterator[None]:
    """Expect a divergence within five seconds."""
    began = time.monotonic()
    with pytest.raises(tracefork.DivergenceError):
        yield
    assert time.monotonic() - began < 5


def alone(agent: Agent) -> Any:
    """Run the agent by itself."""
    return agent("Go on.")


def later(agent: Agent) -> Any:
    """Run it in async code."""
    return asyncio.run(agent.invoke_async("Go on."))


def in_swarm(agent: Agent) -> Any:
    """Run it in a swarm, which makes a failed result of each error."""
    return Swarm([agent])("Go on.")


def in_graph(agent: Agent) -> Any:
    """Run it as a node."""
    builder = GraphBuilder()
    builder.set_max_node_executions(2).add_node(agent, "node")
    return builder.build()("Go on.")


def called(agent: Agent) -> Any:
    """Let the program call the tool."""
    return agent.tool.look_up()


@pytest.mark.parametrize("run", [alone, later, in_swarm, in_graph, called])
def test_a_miss_inside_a_tool_ends_the_run(agent: Call, tape: Path, run: Call) -> None:
    """The model never reads it as a result, and the program gets no result either."""
    with tracefork.record(tape):
        run(asking(agent, "One."))
    with diverges(), tracefork.replay(tape):
        run(asking(agent, "Two."))
        pytest.fail("the run must not end as if nothing had happened")


def test_an_agent_as_a_tool_hides_no_miss(agent: Call, tape: Path) -> None:
    """Strands makes a result of each error of an agent that serves as a tool."""

    def run(word: str) -> Any:
        expert = agent("expert", f"@say {word}").as_tool()
        words = '@call expert {"input": "What is it?"}\n@then\n@say Done.'
        return agent("Helper", words, tools=[expert])("Go on.")

    with tracefork.record(tape):
        run("One.")
    with diverges(), tracefork.replay(tape):
        run("Two.")


def test_hooks_that_retry_end_at_a_miss(agent: Call, tape: Path) -> None:
    """A hook may have a failed call made again for as long as it likes."""

    def again(event: Any) -> None:
        failed = getattr(event, "exception", None)
        event.retry = failed is not None or getattr(event, "result", {}).get("status") == "error"

    def run(word: str) -> Any:
        helper = asking(agent, word)
        for kind in (AfterModelCallEvent, AfterToolCallEvent):
            helper.hooks.add_callback(kind, again)
        return helper("Go on.")

    with tracefork.record(tape):
        run("One.")
    with diverges(), tracefork.replay(tape):
        run("Two.")
