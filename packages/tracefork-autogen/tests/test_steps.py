"""Each exchange is in the step of its team, agent, model call or tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

Call = Callable[..., Any]
MODEL = "model:gpt-4o"


def test_a_team_and_its_agents_have_steps(agent: Call, twice: Call, paths: Call) -> None:
    """Each turn of an agent is a step of its own, in that of the team."""

    def run() -> Any:
        team = RoundRobinGroupChat(
            [agent("writer", "@say A."), agent("critic", "@say B.")],
            termination_condition=MaxMessageTermination(4),
        )
        return asyncio.run(team.run(task="Go on.")).model_dump_json()

    recorded, again = twice(run)
    assert recorded == again
    assert paths() == [
        f"team:RoundRobinGroupChat ▸ agent:{name} ▸ {MODEL}"
        for name in ("writer", "critic", "writer")
    ]
