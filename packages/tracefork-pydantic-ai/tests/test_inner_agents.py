"""An agent that a tool runs is in the step of that tool, on a lane of its name."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

Call = Callable[..., Any]
MODEL = "model:gpt-5-mini"
REPEATS = int(os.environ.get("TRACEFORK_REPEAT", "5"))
NAMES = ("ann", "ben", "cleo", "dan")
FIRST = f"node:ModelRequestNode 1 ▸ {MODEL}"


def desk_of(agent: Call) -> Any:
    """Make an agent with a tool that runs another agent."""
    desk = agent("desk")

    @desk.tool_plain
    async def ask(name: str) -> str:
        """Ask a person."""
        writer = agent(name)
        return str((await writer.run(f"You are {name}.")).output)

    return desk


def both_of(agent: Call) -> Any:
    """Make an agent with a tool that runs two agents at once."""
    desk, slow, fast = agent("desk"), agent("slow", "@slow 0.1\n@say A."), agent("fast", "@say B.")

    @desk.tool_plain
    async def ask_both() -> str:
        """Ask two."""
        results = await asyncio.gather(slow.run("Go on."), fast.run("Go on."))
        return " ".join(result.output for result in results)

    return desk


def test_an_inner_run_is_in_the_step_of_its_tool(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """Two equal calls at once have lanes of their own."""
    words = '@call ask {"name": "ann"}\n@call ask {"name": "ann"}\n@then\n@say Done.'
    recorded, again = twice(lambda: ask(desk_of(agent), words))
    assert recorded == again
    inner = f"agent:desk ▸ node:CallToolsNode 1 ▸ tool:ask ▸ agent:ann ▸ {FIRST}"
    assert paths() == [
        f"agent:desk ▸ {FIRST}",
        *(inner, inner),
        f"agent:desk ▸ node:ModelRequestNode 2 ▸ {MODEL}",
    ]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane for exchange in opened.exchanges]
    assert len(set(lanes[1:3])) == 2


def test_agents_that_a_tool_runs_at_once_have_lanes_of_their_names(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """Which is asked first depends on chance."""
    words = "@call ask_both\n@then\n@say Done."
    recorded, again = twice(lambda: ask(both_of(agent), words))
    assert recorded == again
    assert sum("tool:ask_both ▸ agent:" in path for path in paths()) == 2
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane for exchange in opened.exchanges]
    assert {"slow", "fast"} <= {part.split("/")[0] for lane in lanes for part in lane.split(".")}


def test_the_next_prompt_is_the_recorded_one(agent_at: Call, ask: Call, tape: Path) -> None:
    """Four agents run in four tools at once, and models answer after delays of any length."""
    for seed in range(REPEATS):
        chance = random.Random(seed)

        def answer(request: ModelRequest, chance: random.Random = chance) -> Reply:
            if "You are" in request.last_user_text:
                return Reply(request.last_user_text, delay=chance.random() * 0.05)
            if request.tool_results:
                return Reply(" ".join(result.text for result in request.tool_results))
            return Reply(tool_calls=[ToolCall("ask", {"name": name}) for name in NAMES])

        with ProviderServer(answer, nondeterministic=True) as server:
            desk = desk_of(agent_at(server.url))
            with tracefork.record(tape, overwrite=True):
                recorded = ask(desk)
        with tracefork.replay(tape):
            assert ask(desk) == recorded
