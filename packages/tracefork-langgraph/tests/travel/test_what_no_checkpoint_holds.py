"""State outside of the checkpoints is missing in a run that resumes: that diverges."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.graph import START, StateGraph

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach, resume
from tracefork_testkit import ProviderServer

from .program import THREAD


class State(TypedDict, total=False):
    said: str
    count: Annotated[int, UntrackedValue]


def _counted(state: State) -> str:
    return f"{state.get('count', 0)} were asked before"


def _drawn(_: State) -> str:
    return f"ticket {uuid.uuid4()}"


@pytest.mark.parametrize(
    ("question", "told"),
    [(_counted, "0 were asked before"), (_drawn, "resuming from a checkpoint")],
)
def test_resumed_run_lacks_untracked_and_random_values(
    question: Callable[[State], str],
    told: str,
    model: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
) -> None:
    """A value that LangGraph does not save, and a random one: only a whole replay has both."""
    asked = model(max_retries=0)

    def ask(state: State) -> State:
        return {"said": asked.invoke(question(state)).text, "count": state.get("count", 0) + 1}

    builder = StateGraph(State).add_sequence([("first", ask), ("second", ask)])
    graph = attach(builder.add_edge(START, "first").compile(checkpointer=TapeSaver(tape)))
    with tracefork.record(tape):
        output = graph.invoke({}, THREAD)
    server.stop()
    with tracefork.replay(tape):
        assert graph.invoke({}, THREAD)["said"] == output["said"]
    with pytest.raises(tracefork.DivergenceError, match=told):
        resume(tape, graph, "second")
