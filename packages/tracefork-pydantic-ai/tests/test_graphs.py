"""The graphs of a program have steps, whose joins have several parents."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_graph import BaseNode, End, GraphBuilder, GraphRunContext
from pydantic_graph.join import reduce_list_append

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply

Call = Callable[..., Any]
MODEL = "node:ModelRequestNode 1 ▸ model:gpt-5-mini"
REPEATS = int(os.environ.get("TRACEFORK_REPEAT", "5"))
NAMES = ("ann", "ben", "cleo", "dan")


def fan_in(agent: Call) -> Any:
    """Build a graph: one agent after each of four names at once, and one agent after them."""
    builder: Any = GraphBuilder(name="news", input_type=list[str], output_type=str)

    @builder.step
    async def write(ctx: Any) -> str:
        return str((await agent(ctx.inputs).run(f"Write of {ctx.inputs}.")).output)

    @builder.step
    async def edit(ctx: Any) -> str:
        return str((await agent("editor").run(" ".join(ctx.inputs))).output)

    collect = builder.join(reduce_list_append, initial_factory=list[str])
    builder.add(
        builder.edge_from(builder.start_node).map().to(write),
        builder.edge_from(write).to(collect),
        builder.edge_from(collect).to(edit),
        builder.edge_from(edit).to(builder.end_node),
    )
    return builder.build()


def test_a_join_names_the_nodes_before_it(
    agent: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """Each node has a lane of its name and its place in the fork."""
    graph = fan_in(agent)
    recorded, again = twice(lambda: asyncio.run(graph.run(inputs=list(NAMES))))
    assert recorded == again
    assert sorted(paths()) == [
        f"flow:news ▸ node:edit ▸ agent:editor ▸ {MODEL}",
        *(f"flow:news ▸ node:write ▸ agent:{name} ▸ {MODEL}" for name in NAMES),
    ]
    with tracefork.Tape.open(tape) as opened:
        writers = {step.id for step in opened.steps if step.name == "write"}
        (edit,) = (step for step in opened.steps if step.name == "edit")
        waited: Any = edit.detail["after"]
        others = [step for step in opened.steps if step is not edit and "after" in step.detail]
        lanes = sorted(exchange.lane for exchange in opened.exchanges)
    assert (set(waited), len(waited), others) == (writers, 4, [])
    assert [lane.split("/")[0] for lane in lanes] == [
        "main.edit.1",
        *(f"main.write.{place}.1" for place in (1, 2, 3, 4)),
    ]


def test_the_next_prompt_is_the_recorded_one(agent_at: Call, tape: Path) -> None:
    """A join collects answers as they come in, and models answer after delays of any length.

    Each of TRACEFORK_REPEAT recordings (5 by default) has an order of its own, which its replay
    takes.
    """
    orders = set()
    for seed in range(REPEATS):
        chance = random.Random(seed)

        def answer(request: ModelRequest, chance: random.Random = chance) -> Reply:
            return Reply(request.last_user_text, delay=chance.random() * 0.05)

        with ProviderServer(answer, nondeterministic=True) as server:
            graph = fan_in(agent_at(server.url))
            with tracefork.record(tape, overwrite=True):
                recorded = asyncio.run(graph.run(inputs=list(NAMES)))
        with tracefork.replay(tape):
            assert asyncio.run(graph.run(inputs=list(NAMES))) == recorded
        orders.add(recorded)
    assert len(orders) > 1


@dataclass
class Count(BaseNode[None, None, str]):
    """A node of the older kind: it returns the next one."""

    agent: Any
    times: int = 0

    async def run(self, ctx: GraphRunContext[None, None]) -> Count | End[str]:
        said = (await self.agent.run("Go on.")).output
        return End(said) if self.times else Count(self.agent, 1)


def test_nodes_that_return_the_next_one_have_steps(agent: Call, twice: Call, paths: Call) -> None:
    """A graph without a name is called after its variable, also where it is iterated by hand."""
    builder: Any = GraphBuilder(input_type=Count, output_type=str)
    builder.add(builder.edge_from(builder.start_node).to(Count), builder.node(Count))
    my_graph = builder.build()

    async def act() -> Any:
        async with my_graph.iter(inputs=Count(agent("helper"))) as running:
            async for _ in running:
                pass
        return running.output

    recorded, again = twice(lambda: asyncio.run(act()))
    assert recorded == again
    assert paths() == [f"flow:my_graph ▸ node:Count ▸ agent:helper ▸ {MODEL}"] * 2


def test_a_failed_node_ends_with_its_error(agent: Call, tape: Path) -> None:
    """The graph raises it as it does without a session."""
    builder: Any = GraphBuilder(name="news", output_type=str)

    @builder.step
    async def fail(ctx: Any) -> str:
        raise ZeroDivisionError("no")

    builder.add(
        builder.edge_from(builder.start_node).to(fail),
        builder.edge_from(fail).to(builder.end_node),
    )
    graph = builder.build()
    with pytest.raises(ZeroDivisionError), tracefork.record(tape):
        asyncio.run(graph.run())
    with tracefork.Tape.open(tape) as opened:
        errors = [(step.name, step.error) for step in opened.steps]
    assert errors == [("news", "ZeroDivisionError('no')"), ("fail", "ZeroDivisionError('no')")]
