"""What a person types is an exchange: a replay does not ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat

import tracefork_core as tracefork

Call = Callable[..., Any]
asked: list[str] = []


@pytest.fixture(autouse=True)
def _no_person_was_asked() -> None:
    asked.clear()


def typed(prompt: str) -> str:
    asked.append(prompt)
    return f"answer {len(asked)}"


async def typed_later(prompt: str, cancellation_token: Any) -> str:
    return typed(prompt)


def failing(prompt: str) -> str:
    asked.append(prompt)
    raise EOFError("no terminal")


def converse(agent: Call, input_func: Any) -> list[str]:
    proxy = UserProxyAgent("ann", input_func=input_func)
    team = RoundRobinGroupChat([agent("helper"), proxy], max_turns=4)
    return [message.to_text() for message in asyncio.run(team.run(task="Hello.")).messages]


@pytest.mark.parametrize("input_func", [typed, typed_later])
def test_a_replay_asks_no_person(agent: Call, twice: Call, paths: Call, input_func: Any) -> None:
    """The answers are the recorded ones, from sync and async functions."""
    recorded, again = twice(lambda: converse(agent, input_func))
    assert recorded == again
    assert [line for line in again if line.startswith("answer")] == ["answer 1", "answer 2"]
    assert len(asked) == 2
    assert paths()[1].endswith("agent:ann ▸ interrupt:user_input")


def test_a_fork_gives_another_answer(agent: Call, tape: Path) -> None:
    """The text is what the person typed."""
    with tracefork.record(tape):
        converse(agent, typed)
    no = tracefork.Replace(text="no")
    with tracefork.fork(tape, "interrupt:user_input", no, writes="stub"):
        assert "no" in converse(agent, typed)
    assert len(asked) == 2


def test_an_error_of_the_person_s_terminal_is_raised_again(agent: Call, tape: Path) -> None:
    """AutoGen makes an error of the team of it, in both runs."""
    errors = []
    for session in (tracefork.record, tracefork.replay):
        with pytest.raises(RuntimeError) as raised, session(tape):
            converse(agent, failing)
        errors.append(str(raised.value).splitlines()[0])
    assert "no terminal" in errors[0]
    assert errors[0] == errors[1]
    assert len(asked) == 1


def test_standard_input_is_read_once(
    agent: Call, twice: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an `input_func` AutoGen calls `input`, in a thread."""
    monkeypatch.setattr("builtins.input", typed)
    recorded, again = twice(lambda: converse(agent, None))
    assert recorded == again
    assert len(asked) == 2
