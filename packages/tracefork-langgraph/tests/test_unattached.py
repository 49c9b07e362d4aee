"""A graph that no line attaches has its steps and tools on the tape of an ambient session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

import tracefork_core as tracefork
from tracefork_core import Tape
from tracefork_testkit import ProviderServer

RUNS = ("invoke", "stream")


QUESTION = {"messages": [("user", '@call pay {"euros": 9}\n@then\n@say Paid.')]}


@pytest.fixture
def clerk(model: Callable[..., Any]) -> tuple[Any, list[int]]:
    """An agent whose tool declares that it writes, and what the tool has paid."""
    paid: list[int] = []

    @tool
    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return f"paid {euros}"

    pay.metadata = {"effect": "write"}
    return create_agent(model(), [pay], name="clerk"), paid


@pytest.mark.parametrize("how", RUNS)
def test_steps_and_tools_need_no_line(
    clerk: tuple[Any, list[int]], tape: Path, server: ProviderServer, how: str
) -> None:
    """The replay pays nothing, and needs no server."""
    agent, paid = clerk

    def run() -> list[Any]:
        return list(agent.stream(QUESTION)) if how == "stream" else [agent.invoke(QUESTION)]

    with tracefork.record(tape):
        run()
    server.stop()
    with tracefork.replay(tape):
        run()
    assert paid == [9]
    with Tape.open(tape) as opened:
        paths = [" ▸ ".join(each.step_path) for each in opened.exchanges]
        effects = [each.aside.effect for each in opened.exchanges]
    assert [path.split(" ▸ ")[:2] for path in paths] == [
        ["clerk", "model"],
        ["clerk", "tools"],
        ["clerk", "model"],
    ]
    assert effects == [None, "write", None]


def test_a_session_that_is_not_ambient_has_no_steps_without_attach(
    clerk: tuple[Any, list[int]], tape: Path
) -> None:
    """The control: nothing is instrumented there."""
    agent, _ = clerk
    with tracefork.record(tape, ambient=False):
        agent.invoke(QUESTION)
    with Tape.open(tape) as opened:
        assert (opened.steps, opened.exchanges) == ([], [])


def test_nothing_stays_after_the_session(clerk: tuple[Any, list[int]], tape: Path) -> None:
    """LangGraph has its own methods again, and a run has the caller's handlers only."""
    from langgraph.pregel import Pregel

    own = Pregel.stream
    agent, _ = clerk
    with tracefork.record(tape):
        assert Pregel.stream is not own
        agent.invoke(QUESTION)
    assert Pregel.stream is own
    handlers: list[Any] = []
    look = RunnableLambda(lambda _, config: handlers.extend(config["callbacks"].handlers))
    look.invoke("")
    assert handlers == []
