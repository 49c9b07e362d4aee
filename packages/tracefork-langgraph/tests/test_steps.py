"""The steps of a tape are the graph's own, and each exchange belongs to the right one."""

from __future__ import annotations

import asyncio
import operator
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import TracingHandler, attach, detach
from tracefork_testkit import ProviderServer


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def one_node(function: Any, node: str = "node", **options: Any) -> Any:
    """Compile a graph of one node."""
    return StateGraph(State).add_node(node, function).add_edge(START, node).compile(**options)


def steps_on(tape: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Read the kind and the path of each step, in an order that does not depend on threads."""
    with tracefork.Tape.open(tape) as opened:
        return sorted((step.kind, opened.step_path(step.id)) for step in opened.steps)


def test_an_exchange_belongs_to_its_model_under_its_node(
    agent: Any, attached: Any, drive: Any, tape: Path, paths: Any, way: str
) -> None:
    """In every way to run a graph, both model calls belong to the model, under its node."""
    graph = attached(agent())
    with tracefork.record(tape):
        drive(graph, way)
    assert paths() == [("support", "model", "ChatOpenAI")] * 2


def test_runs_nodes_models_and_tools_of_an_agent_are_steps(
    agent: Any, attached: Any, drive: Any, tape: Path, kind: str, name_of: str
) -> None:
    """All of them ended, and their names contain no ids."""
    graph = attached(agent(kind))
    with tracefork.record(tape):
        drive(graph, "invoke")
    model, tools = ("support", "model"), ("support", "tools")
    assert steps_on(tape) == [
        *[("model", (*model, name_of))] * 2,
        *[("node", model)] * 2,
        *[("node", tools)] * 3,
        ("run", ("support",)),
        ("tool", (*tools, "current_time")),
        ("tool", (*tools, "lookup_order")),
        ("tool", (*tools, "search_policy")),
    ]
    with tracefork.Tape.open(tape) as opened:
        assert all(step.ended and step.error is None for step in opened.steps)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages"])
def test_a_subgraph_is_a_step_under_its_node(
    model: Any, attached: Any, drive: Any, tape: Path, paths: Any, how: str
) -> None:
    """The path to a model in a nested graph names both nodes."""
    asked = model()
    inner = one_node(lambda state: {"messages": [asked.invoke("hello")]}, "inner")
    outer = attached(one_node(inner, "outer", name="whole"))
    with tracefork.record(tape):
        drive(outer, how, "hello")
    assert paths() == [("whole", "outer", "LangGraph", "inner", "ChatOpenAI")]


def test_graph_in_a_node_is_recorded_as_a_subgraph(attached: Any, tape: Path) -> None:
    """It begins like a chain; a real chain stays one."""
    inner = one_node(lambda _: {"messages": ["hello"]}, "inner")
    plain = RunnableLambda(lambda state: state, name="plain")
    graph = attached(one_node(lambda state: inner.invoke(plain.invoke(state)), "outer"))
    with tracefork.record(tape):
        graph.invoke({"messages": []})
    assert steps_on(tape) == [
        ("chain", ("LangGraph", "outer", "plain")),
        ("node", ("LangGraph", "outer")),
        ("node", ("LangGraph", "outer", "LangGraph", "inner")),
        ("run", ("LangGraph",)),
        ("subgraph", ("LangGraph", "outer", "LangGraph")),
    ]


def test_an_agent_in_a_graph_is_a_step_of_its_own(agent: Any, attached: Any, tape: Path) -> None:
    """A named agent that is a node appears under the node. An old LangChain does not name it."""
    said: list[object] = []

    class Hears(BaseCallbackHandler):
        def on_chain_start(self, *_: object, metadata: Any = None, **started: Any) -> None:
            if started.get("name") == "support":
                said.append((metadata or {}).get("lc_agent_name"))

    graph = attached(one_node(agent(), "help"))
    with tracefork.record(tape):
        graph.invoke({"messages": [("user", "hello")]}, {"callbacks": [Hears()]})
    expected = [
        ("agent" if said == ["support"] else "subgraph", ("LangGraph", "help", "support")),
        ("model", ("LangGraph", "help", "support", "model", "ChatOpenAI")),
        ("node", ("LangGraph", "help")),
        ("node", ("LangGraph", "help", "support", "model")),
        ("run", ("LangGraph",)),
    ]
    assert steps_on(tape) == sorted(expected)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_each_branch_of_a_fan_out_is_a_step_of_its_own(
    model: Any, attached: Any, drive: Any, tape: Path, paths: Any, how: str
) -> None:
    """Twenty sends of one node are twenty steps, each with its one exchange."""
    asked = model()
    builder = StateGraph(State).add_node("worker", lambda _: {"messages": [asked.invoke("same")]})
    builder.add_conditional_edges(START, lambda _: [Send("worker", {})] * 20, ["worker"])
    graph = attached(builder.compile())
    with tracefork.record(tape):
        drive(graph, how, {"messages": []})
    assert paths() == [("LangGraph", "worker", "ChatOpenAI")] * 20
    with tracefork.Tape.open(tape) as opened:
        parents = {step.id: step.parent for step in opened.steps}
        assert len({parents[exchange.step or ""] for exchange in opened.exchanges}) == 20


def test_a_model_in_a_tool_is_a_step_of_the_tool(
    model: Any, attached: Any, drive: Any, tape: Path, paths: Any
) -> None:
    """A tool that calls a model is in the path; its parallel calls are separate."""
    expert = model()

    def ask_expert(topic: str) -> str:
        """Ask an expert."""
        return str(expert.invoke(topic).content)

    graph = attached(create_agent(model(), [ask_expert], name="boss"))
    calls = '@call ask_expert {"topic": "a"}\n@call ask_expert {"topic": "b"}\n@then\n@say done'
    with tracefork.record(tape):
        drive(graph, "invoke", calls)
    assert paths() == [
        ("boss", "model", "ChatOpenAI"),
        ("boss", "tools", "ask_expert", "ChatOpenAI"),
        ("boss", "tools", "ask_expert", "ChatOpenAI"),
        ("boss", "model", "ChatOpenAI"),
    ]


def test_two_recordings_have_the_same_steps(
    agent: Any, attached: Any, drive: Any, tmp_path: Path
) -> None:
    """Names contain no ids of runs or tasks."""
    graph = attached(agent())
    for name in ("one", "two"):
        with tracefork.record(tmp_path / name):
            drive(graph, "invoke")
    assert steps_on(tmp_path / "one") == steps_on(tmp_path / "two")


def test_a_raw_call_in_a_node_belongs_to_the_node(
    server: ProviderServer, attached: Any, drive: Any, tape: Path, paths: Any
) -> None:
    """A request of a node without LangChain belongs to it; one of a raw thread has no step."""

    def ask(_: State) -> dict[str, Any]:
        httpx.get(f"{server.url}/echo")
        thread = threading.Thread(target=httpx.get, args=(f"{server.url}/echo?thread",))
        thread.start()
        thread.join()
        return {"messages": []}

    graph = attached(one_node(ask))
    with tracefork.record(tape):
        drive(graph, "invoke", {"messages": []})
        httpx.get(f"{server.url}/echo?after")
    assert paths() == [("LangGraph", "node"), (), ()]


@pytest.mark.filterwarnings("ignore:Unexpected type for token usage")
def test_prompts_of_one_batch_have_no_step(
    model: Any, attached: Any, tape: Path, paths: Any
) -> None:
    """`generate` starts all prompts before it sends any. No step is better than a wrong one."""
    asked = attached(model())
    prompts = [[HumanMessage(text)] for text in "abc"]
    with tracefork.record(tape):
        asked.generate(prompts)
        asyncio.run(asked.agenerate(prompts))
        asked.generate(prompts[:1])
    assert paths() == [()] * 6 + [("ChatOpenAI",)]


async def test_requests_of_a_stream_consumer_do_not_belong_to_the_model(
    model: Any, server: ProviderServer, attached: Any, tape: Path, paths: Any
) -> None:
    """Between two tokens, the consumer's own requests have no step."""
    asked = attached(model())
    async with httpx.AsyncClient() as client:
        with tracefork.record(tape):
            async with aclosing(asked.astream("hello")) as stream:
                async for _ in stream:
                    await client.get(f"{server.url}/echo")
                    break
            await client.get(f"{server.url}/echo?after")
            for _ in asked.stream("hello"):
                httpx.get(f"{server.url}/echo?sync")
                break
    assert paths() == [("ChatOpenAI",), (), (), ("ChatOpenAI",), ()]
    with tracefork.Tape.open(tape) as opened:
        assert [bool(step.ended) and step.error is None for step in opened.steps] == [True, True]


def test_requests_of_a_retriever_belong_to_its_step(
    server: ProviderServer, attached: Any, tape: Path, paths: Any
) -> None:
    """The step has the kind retriever."""

    class Shelf(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            return [Document(httpx.get(f"{server.url}/echo").text)]

    shelf = attached(Shelf())
    with tracefork.record(tape):
        shelf.invoke("tapes")
    assert paths() == [("Shelf",)]
    assert steps_on(tape) == [("retriever", ("Shelf",))]


def test_failed_step_records_its_error(attached: Any, tape: Path) -> None:
    """The error is on the node and on the run around it; the tape is complete."""

    def fail(_: State) -> None:
        raise LookupError("no such order")

    graph = attached(one_node(fail))
    with pytest.raises(LookupError), tracefork.record(tape):
        graph.invoke({"messages": []})
    with tracefork.Tape.open(tape) as opened:
        assert [step.error for step in opened.steps] == ["LookupError('no such order')"] * 2


def test_an_interrupt_is_not_an_error(attached: Any, tape: Path) -> None:
    """A node that waits for a person ends without an error; the interrupt is a step."""
    graph = attached(one_node(lambda _: interrupt("sure?"), checkpointer=InMemorySaver()))
    with tracefork.record(tape):
        graph.invoke({"messages": []}, {"configurable": {"thread_id": "1"}})
    with tracefork.Tape.open(tape) as opened:
        kinds = [(step.kind, step.error) for step in opened.steps]
    assert kinds == [("run", None), ("node", None), ("interrupt", None)]


def test_a_handler_passed_by_hand_works_without_attach(agent: Any, tape: Path, paths: Any) -> None:
    """With `attach` too, each run is still one step."""
    graph, ticket = agent(), {"messages": [("user", "hello")]}
    with tracefork.record(tape):
        graph.invoke(ticket, {"callbacks": [TracingHandler()]})
        attach(graph)
        graph.invoke(ticket, {"callbacks": [TracingHandler()]})
        detach(graph)
    assert paths() == [("support", "model", "ChatOpenAI")] * 2
    assert len(steps_on(tape)) == 6
