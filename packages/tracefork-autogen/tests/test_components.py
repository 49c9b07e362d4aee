"""Agents and clients that were copied, pickled or written down are recorded like any others."""

from __future__ import annotations

import asyncio
import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient, UserMessage
from autogen_core.tools import FunctionTool

Call = Callable[..., Any]


def count(word: str) -> int:
    """Count letters."""
    return len(word)


def written(component: Any) -> str:
    """Return a component as JSON, which holds no key: it is filled in again."""
    page: str = component.dump_component().model_dump_json()
    return page.replace("**********", "sk-none")


def test_a_team_that_was_written_down_is_recorded(agent: Call, twice: Call, paths: Call) -> None:
    """Its client is new, and its tool is a function made of the source on the page."""
    tool = FunctionTool(count, "Counts.")
    helper = agent("helper", '@call count {"word": "tea"}\n@then\n@say Done.', tools=[tool])
    page = written(RoundRobinGroupChat([helper], max_turns=1))

    def run() -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns that it will execute the source.
            team = RoundRobinGroupChat.load_component(json.loads(page))
        return str(asyncio.run(team.run(task="Go on.")))

    recorded, again = twice(run)
    assert recorded == again
    assert [path.rpartition("agent:helper ▸ ")[2] for path in paths()] == [
        "model:gpt-4o",
        "tool:count",
    ]


@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_pickled_client_is_recorded(client: Call, twice: Call, paths: Call, when: str) -> None:
    """A client keeps what it was made from, and makes its connections again."""
    pickled = pickle.dumps(client())

    def run() -> str:
        made: ChatCompletionClient = pickle.loads(pickled)
        return str(asyncio.run(made.create([UserMessage(content="@say Hi.", source="user")])))

    recorded, again = twice(run)
    assert recorded == again
    assert paths() == ["model:gpt-4o"]


def test_an_agent_that_was_dumped_in_a_session_is_recorded(client: Call, twice: Call) -> None:
    """Dumping and loading are no part of the tape."""

    def run() -> str:
        helper = AssistantAgent("helper", client(), system_message="@say Hi.")
        loaded = AssistantAgent.load_component(json.loads(written(helper)))
        return str(asyncio.run(loaded.run(task="Go on.")))

    recorded, again = twice(run)
    assert recorded == again
