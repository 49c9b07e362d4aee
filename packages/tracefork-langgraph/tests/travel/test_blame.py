"""Blame of a graph: each fork starts at the checkpoint nearest to its fork point."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.graph import StateGraph

import tracefork_core as tracefork
from tracefork_langgraph import arerun, rerun
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .graphs import Node, Ran, State, row
from .program import START, THREAD, Program, Shape

pytestmark = pytest.mark.many_processes


class _Misled:
    """Answers wrong the first time it is asked to look, and every seventh time."""

    def __init__(self) -> None:
        self._looked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        if request.last_user_text != "look":
            return Reply(f"{request.last_user_text} done")
        self._looked += 1
        return Reply("wrong" if self._looked % 7 == 1 else "right")


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that sometimes misleads the second of three nodes."""
    with ProviderServer(_Misled()) as server:
        yield server


def three(model: Any, ran: Ran) -> StateGraph[State]:
    """Three nodes in a row."""
    return row([Node(name, model, ran, name) for name in ("first", "look", "tell")])


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_blame_names_the_node_that_made_a_run_fail(program: Callable[[Shape], Program]) -> None:
    """Its forks run that node and the next, or only the next, but never the one before."""
    made = program(three)
    with tracefork.record(made.tape):
        made.run(START)
    runs: list[list[str]] = []

    def agent() -> Any:
        made.ran.clear()
        try:
            return rerun(made.graph)
        finally:
            runs.append(list(made.ran))

    def is_right(output: Any) -> bool:
        return "look: wrong" not in output["said"]

    report = tracefork.blame(made.tape, agent, is_right, budget="200 calls")
    assert report.result.decisive is not None
    assert report.result.decisive.unit == 1
    assert report.units[1].step[:2] == ("LangGraph", "look")
    assert runs[0] == ["first", "look", "tell"]  # The replay, from the recorded input.
    assert ["look", "tell"] in runs
    assert ["tell"] in runs


@pytest.mark.parametrize("loop", ["async"], indirect=True)
@pytest.mark.parametrize("by_itself", [True, False])
def test_blame_names_the_node_that_made_an_async_run_fail(
    program: Callable[[Shape], Program], loop: asyncio.Runner, *, by_itself: bool
) -> None:
    """In a fork from the middle, the tasks of the nodes have other numbers and names."""
    made = program(three)
    run = loop.get_loop().run_until_complete

    async def under_another_name() -> Any:
        return await made.graph.ainvoke(START, THREAD)

    with tracefork.record(made.tape):
        made.run(START) if by_itself else run(under_another_name())

    def agent() -> Any:
        return loop.run(arerun(made.graph)) if by_itself else run(arerun(made.graph))

    def is_right(output: Any) -> bool:
        return "look: wrong" not in output["said"]

    report = tracefork.blame(made.tape, agent, is_right, budget="200 calls")
    assert report.result.verdict.units == (1,)
    assert report.result.undefined.forks == 0


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_rerun_is_refused_outside_of_a_session(
    program: Callable[[Shape], Program],
) -> None:
    """The error names the places where `rerun` works."""
    with pytest.raises(tracefork.UsageError, match="Use `rerun` inside"):
        rerun(program(three).graph)
