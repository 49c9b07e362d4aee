"""Agents that run in parallel: a replay gives the next model the recorded prompt."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply

REPEATS = int(os.environ.get("TRACEFORK_REPEAT", "3"))
NAMES = ("ann", "ben", "cleo")


def lookup(name: str) -> str:
    """Return what is known of a person."""
    return f"{name} is fine"


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_the_next_prompt_is_the_recorded_one(
    agent: Callable[..., Any], ask: Callable[..., Any], tape: Path
) -> None:
    """Events stand in a prompt as they came in, and models answer after delays of any length.

    Each of TRACEFORK_REPEAT recordings (3 by default) has an order of its own; both its replays
    take that order, strictly, and the whole session is the same.
    """
    orders = set()
    for seed in range(REPEATS):
        chance = random.Random(seed)

        def answer(request: ModelRequest, chance: random.Random = chance) -> Reply:
            return Reply(f"heard {len(request.messages)}", delay=chance.random() * 0.03)

        with ProviderServer(answer, nondeterministic=True) as server:
            url = server.url

            def act(url: str = url) -> Any:
                workers = [agent(name, f"You are {name}.") for name in NAMES]
                for worker in workers:
                    worker.model.base_url = url
                last = agent("last", "Sum up.")
                last.model.base_url = url
                both = ParallelAgent(name="both", sub_agents=workers)
                return ask(SequentialAgent(name="desk", sub_agents=[both, last])).model_dump_json()

            with tracefork.record(tape, overwrite=True):
                recorded = act()
            prompt = server.requests[-1].body
        for _ in range(2):
            with tracefork.replay(tape, strict=True):
                assert act() == recorded
        orders.add(tuple(sorted(NAMES, key=lambda name: prompt.find(f"[{name}] said".encode()))))
    assert len(orders) > 1
