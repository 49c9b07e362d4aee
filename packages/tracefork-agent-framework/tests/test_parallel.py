"""Agents that run at once, with answers in any order, replay as they ran."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework.orchestrations import ConcurrentBuilder, SequentialBuilder

import tracefork_core as tracefork

Call = Callable[..., Any]
TIMES = int(os.environ.get("TRACEFORK_REPEAT", "5"))
"""How often: a few times in CI, 50 times at night."""
JITTER = (0.0, 0.03, 0.01, 0.02)


@pytest.mark.parametrize("run", range(TIMES))
def test_a_fan_in_of_four_replays_as_it_ran(
    agent: Call, ask: Call, twice: Call, tape: Path, run: int
) -> None:
    """Each of four agents calls a tool; the editor's prompt has all that they said."""

    def look(city: str) -> str:
        looked.append(city)
        return f"{city}: sunny"

    looked: list[str] = []

    def words(n: int) -> str:
        slow = f"@slow {JITTER[(run + n) % 4]}\n"
        return f'{slow}@call look {{"city": "Rome"}}\n@then\n{slow}@say From {n}.'

    def workflow() -> Any:
        writers = [agent(f"writer{n}", words(n), tools=[look]) for n in range(4)]
        four = ConcurrentBuilder(participants=writers).build().as_agent("four")
        return SequentialBuilder(participants=[four, agent("editor", "@say Done.")]).build()

    def texts() -> list[str]:
        events = ask(workflow(), stream=run % 2 == 1)
        return [str(event.data) for event in events if event.type == "executor_completed"]

    recorded, again = twice(texts)
    assert len(recorded) == len(again)
    assert looked.count("Rome") == 4
    with tracefork.Tape.open(tape) as opened:
        lanes = sorted({exchange.lane.rsplit("/", 1)[-1] for exchange in opened.exchanges})
    assert any(lane.endswith("writer3.1") for lane in lanes)
