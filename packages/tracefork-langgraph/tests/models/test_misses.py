"""A request that is not on the tape costs one attempt, says why, and cannot be hidden.

SDKs may retry, fall back or swallow errors: `sent` counts the requests they made.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import aiohttp
import httpx
import httpx2
import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

import tracefork_core as tracefork
from tracefork_langgraph import attach, detach

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

SAID = "differs from recorded exchange 0"


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that a client was called to send, answered or not."""
    count: list[object] = []

    def meter(kind: Any, name: str) -> None:
        original = getattr(kind, name)

        def counted(self: Any, *args: Any, **options: Any) -> Any:
            count.append(self)
            return original(self, *args, **options)

        monkeypatch.setattr(kind, name, counted)

    for library in (httpx, httpx2):
        meter(library.Client, "send")
        meter(library.AsyncClient, "send")
    meter(aiohttp.ClientSession, "_request")
    return count


def test_miss_is_one_attempt_and_its_error_names_the_divergence(
    chat: Any, ask: Any, tape: Path, sent: list[object], name: str
) -> None:
    """After it, even a request that is on the tape is refused."""
    model, bound = chat(name), attach(chat(name))
    errors: list[str] = []

    def swallow(model: Any, way: str, *prompts: str) -> None:
        for prompt in prompts:
            try:
                ask(model, way, prompt)
            except Exception as error:
                errors.append(str(error))

    for way in ("invoke", "ainvoke", "stream", "astream"):
        ambient = way in ("invoke", "astream")
        asked = model if ambient else bound
        with tracefork.record(tape, overwrite=True, ambient=ambient):
            ask(asked, way)
        sent.clear()
        errors.clear()
        with (
            pytest.raises(tracefork.DivergenceError, match=SAID),
            tracefork.replay(tape, ambient=ambient),
        ):
            swallow(asked, way, "hellp", "hello")
        assert len(sent) == len(errors) == 2
        assert all(SAID in error for error in errors)
    detach(bound)


def test_retry_policy_and_fallback_do_not_hide_a_divergence(
    chat: Any, tape: Path, sent: list[object], name: str
) -> None:
    """The model and the fallback are refused once each, and the node does not run again."""
    model = chat(name)
    tries: list[str] = []
    chain = model.with_fallbacks([model])
    prompt = "hello"

    def node(_: object) -> dict[str, Any]:
        tries.append(prompt)
        return {"messages": [chain.invoke(prompt)]}

    policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    builder = StateGraph(State).add_node("node", node, retry_policy=policy)
    graph = attach(builder.add_edge(START, "node").compile())
    with tracefork.record(tape):
        graph.invoke({"messages": []})
    assert (len(sent), len(tries)) == (1, 1)
    prompt = "hellp"
    with pytest.raises(tracefork.DivergenceError, match=SAID), tracefork.replay(tape):
        graph.invoke({"messages": []})
    assert (len(sent), len(tries)) == (3, 2)
    detach(graph)


def test_tool_node_that_handles_errors_does_not_hide_a_divergence(
    chat: Any, tape: Path, sent: list[object], name: str
) -> None:
    """The error becomes a tool message, and the block still raises it."""
    model = chat(name)
    prompt = "hello"

    def ask_expert(topic: str) -> str:
        """Ask an expert."""
        return str(model.invoke(prompt).content)

    tools = ToolNode([ask_expert], handle_tool_errors=True)
    graph = attach(StateGraph(State).add_node("t", tools).add_edge(START, "t").compile())
    call = {"name": "ask_expert", "args": {"topic": "a"}, "id": "call_1"}
    state = {"messages": [AIMessage("", tool_calls=[call])]}
    with tracefork.record(tape):
        graph.invoke(state)
    prompt = "hellp"
    answers = []
    with pytest.raises(tracefork.DivergenceError, match=SAID), tracefork.replay(tape):
        answers.append(graph.invoke(state)["messages"][-1].content)
    assert SAID in answers[0]
    assert len(sent) == 2
    detach(graph)
