"""The steps of a tape are the graph's own, and each exchange belongs to the one that made it."""

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
    """Read the kind and the path of each step, in an order that no thread decides."""
    with tracefork.Tape.open(tape) as opened:
        return sorted((step.kind, opened.step_path(step.id)) for step in opened.steps)


def test_an_exchange_belongs_to_its_model_under_its_node(
    agent: Any, attached: Any, drive: Any, tape: Path, paths: Any, way: str
) -> None:
    """However a graph is run, both model calls are the model's, under the node called model."""
    graph = attached(agent())
    with tracefork.record(tape):
        drive(graph, way)
    assert paths() == [("support", "model", "ChatOpenAI")] * 2


def test_the_steps_of_an_agent(
    agent: Any, attached: Any, drive: Any, tape: Path, kind: str, name_of: str
) -> None:
    """Run, nodes, models and tools are steps, all ended, under names without ids."""
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
    """The path to a model in a graph in a graph names both nodes."""
    asked = model()
    inner = one_node(lambda state: {"messages": [asked.invoke("hello")]}, "inner")
    outer = attached(one_node(inner, "outer", name="whole"))
    with tracefork.record(tape):
        drive(outer, how, "hello")
    assert paths() == [("whole", "outer", "LangGraph", "inner", "ChatOpenAI")]


def test_a_graph_in_a_node_turns_out_to_be_one(attached: Any, tape: Path) -> None:
    """It begins as any chain does; a chain that is none stays what it was."""
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
    """A named agent that is a node shows under the node, by its name; older ones say no more."""
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
    """Twenty sends of one node are twenty steps, each with the one exchange it made."""
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
    """A tool that asks a model shows in the path; parallel calls of it are told apart."""
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
    """Names carry no ids of runs or tasks: recorded again, they are the same."""
    graph = attached(agent())
    for name in ("one", "two"):
        with tracefork.record(tmp_path / name):
            drive(graph, "invoke")
    assert steps_on(tmp_path / "one") == steps_on(tmp_path / "two")


def test_a_raw_call_in_a_node_belongs_to_the_node(
    server: ProviderServer, attached: Any, drive: Any, tape: Path, paths: Any
) -> None:
    """What a node asks without LangChain is the node's; what a bare thread asks is nobody's."""

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
def test_prompts_asked_as_one_batch_are_not_attributed(
    model: Any, attached: Any, tape: Path, paths: Any
) -> None:
    """`generate` starts every prompt before it asks for one: no step is better than a wrong one."""
    asked = attached(model())
    prompts = [[HumanMessage(text)] for text in "abc"]
    with tracefork.record(tape):
        asked.generate(prompts)
        asyncio.run(asked.agenerate(prompts))
        asked.generate(prompts[:1])
    assert paths() == [()] * 6 + [("ChatOpenAI",)]


async def test_who_reads_a_stream_is_not_the_model(
    model: Any, server: ProviderServer, attached: Any, tape: Path, paths: Any
) -> None:
    """Between two tokens the consumer's own calls are not attributed to the model."""
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


def test_a_retriever_is_a_step(
    server: ProviderServer, attached: Any, tape: Path, paths: Any
) -> None:
    """What a retriever asks for belongs to it."""

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


def test_a_failed_step_says_so(attached: Any, tape: Path) -> None:
    """The error is on the node and on the run around it; the tape is whole."""

    def fail(_: State) -> None:
        raise LookupError("no such order")

    graph = attached(one_node(fail))
    with pytest.raises(LookupError), tracefork.record(tape):
        graph.invoke({"messages": []})
    with tracefork.Tape.open(tape) as opened:
        assert [step.error for step in opened.steps] == ["LookupError('no such order')"] * 2


def test_an_interrupt_is_not_an_error(attached: Any, tape: Path) -> None:
    """A node that waits for a person has ended without an error; the interrupt is its step."""
    graph = attached(one_node(lambda _: interrupt("sure?"), checkpointer=InMemorySaver()))
    with tracefork.record(tape):
        graph.invoke({"messages": []}, {"configurable": {"thread_id": "1"}})
    with tracefork.Tape.open(tape) as opened:
        kinds = [(step.kind, step.error) for step in opened.steps]
    assert kinds == [("run", None), ("node", None), ("interrupt", None)]


def test_a_handler_passed_by_hand_works_without_attach(agent: Any, tape: Path, paths: Any) -> None:
    """`TracingHandler` is an ordinary callback handler; with `attach` too, each run is one step."""
    graph, ticket = agent(), {"messages": [("user", "hello")]}
    with tracefork.record(tape):
        graph.invoke(ticket, {"callbacks": [TracingHandler()]})
        attach(graph)
        graph.invoke(ticket, {"callbacks": [TracingHandler()]})
        detach(graph)
    assert paths() == [("support", "model", "ChatOpenAI")] * 2
    assert len(steps_on(tape)) == 6


def test_without_attach_there_are_no_steps(agent: Any, drive: Any, tape: Path, paths: Any) -> None:
    """The check above looks at the right place: nothing else puts steps on a tape."""
    with tracefork.record(tape):
        drive(agent(), "invoke")
    assert paths() == [(), ()]
    assert steps_on(tape) == []
