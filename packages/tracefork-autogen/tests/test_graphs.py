"""Graphs: their nodes begin in one order, and a replay gives a join the recorded prompt."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply

Call = Callable[..., Any]
REPEATS = int(os.environ.get("TRACEFORK_REPEAT", "5"))
NAMES = ("oslo", "rome", "cairo", "lima")
MANY = (*NAMES, "paris", "tokyo", "delhi")


def fan_in(branches: Any, last: Any, first: Any = None) -> GraphFlow:
    builder = DiGraphBuilder()
    for node in (*branches, last, *((first,) if first else ())):
        builder.add_node(node)
    for branch in branches:
        builder.add_edge(branch, last)
        if first:
            builder.add_edge(first, branch)
    return GraphFlow(builder.get_participants(), builder.build(), name="news")


def test_the_first_nodes_begin_in_the_order_of_the_graph(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """AutoGen keeps them in a set: the hashes of their names would decide."""

    def run() -> Any:
        branches = [agent(name, f"@say {name}.") for name in MANY]
        return ask(fan_in(branches, agent("last", "@say Sum.")))

    recorded, again = twice(run)
    assert recorded == again
    with tracefork.Tape.open(tape) as opened:
        begun = [step.name for step in opened.steps if step.kind == "agent"]
    assert begun == [*MANY, "last"]


def test_a_join_names_the_branches_that_it_waited_for(
    agent: Call, ask: Call, twice: Call, causes: Call
) -> None:
    """The first node is left out: the branches came after it."""

    def run() -> Any:
        branches = [agent(name, f"@say {name}.") for name in NAMES]
        return ask(fan_in(branches, agent("last", "@say Sum."), agent("first", "@say Go.")))

    twice(run)
    *branches, (joined, after) = causes()
    assert branches == [(name, ["first"]) for name in NAMES]
    assert (joined, set(after)) == ("last", set(NAMES))


def test_a_join_gets_the_recorded_prompt(
    agent_at: Call, ask: Call, tape: Path, causes: Call
) -> None:
    """Branches stand in its prompt as they ended, and models answer after delays of any length.

    Each of TRACEFORK_REPEAT recordings (5 by default) has an order of its own. A strict replay
    takes that order, and all messages are the same.
    """
    orders = set()
    for seed in range(REPEATS):
        chance = random.Random(seed)

        def answer(request: ModelRequest, chance: random.Random = chance) -> Reply:
            return Reply(f"heard {len(request.messages)}", delay=chance.random() * 0.03)

        with ProviderServer(answer, nondeterministic=True) as server:
            make = agent_at(server.url)

            def act(make: Callable[..., AssistantAgent] = make) -> Any:
                branches = [make(name, f"You are {name}.") for name in NAMES]
                return ask(fan_in(branches, make("last", "Sum up."), make("first", "Begin.")))

            with tracefork.record(tape, overwrite=True):
                recorded = act()
        with tracefork.replay(tape, strict=True) as replayed:
            assert act() == recorded
        assert replayed.digest == replayed.tape.digest
        orders.add(tuple(causes()[-1][1]))
    assert len(orders) > 1
