"""`attach` finds the models of a graph, returns the same object, and can be undone."""

from __future__ import annotations

import functools
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

import tracefork_core as tracefork
from tracefork_core.adapters import found_adapters
from tracefork_langgraph import ADAPTER, attach, detach


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def graph_of(node: Any) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile()


class Desk:
    """An object whose method is a node."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def answer(self, _: State) -> dict[str, Any]:
        return {"messages": [self.model.invoke("hello")]}


def ask(model: Any, _: object) -> dict[str, Any]:
    return {"messages": [model.invoke("hello")]}


def in_a_subgraph(model: Any) -> Any:
    return graph_of(graph_of(functools.partial(ask, model)))


def in_a_tool(model: Any) -> Any:
    def expert(topic: str) -> str:
        """Ask an expert."""
        return "".join(model.invoke(text).content for text in [topic])

    return graph_of(ToolNode([expert]))


def in_a_class(model: Any) -> Any:
    class Expert(BaseTool):
        name: str = "expert"
        description: str = "Ask an expert."

        def _run(self, topic: str) -> str:
            return str(model.invoke(topic).content)

    return graph_of(ToolNode([Expert()]))


def in_a_task(model: Any) -> Any:
    @task
    def answer() -> str:
        return str(model.invoke("hello").content)

    @entrypoint()
    def flow(_: object) -> str:
        return str(answer().result())

    return flow


def in_a_global(model: Any) -> Any:
    """Return a graph of another module's function, which names the model only in an inner scope."""
    source = "def ask(_):\n    return {'messages': [model.invoke(t) for t in ['hello']]}"
    module: dict[str, Any] = {"model": model, "__name__": "app"}
    exec(source, module)
    return graph_of(module["ask"])


CALL = {"name": "expert", "args": {"topic": "hello"}, "id": "call_1"}
HOLDERS: dict[str, Any] = {
    "the model": lambda model: model,
    "a chain": lambda model: RunnableLambda(lambda _: "hello") | model.with_retry(),
    "a fallback": lambda model: model.with_fallbacks([model]),
    "an agent": lambda model: create_agent(model, []),
    "a method": lambda model: graph_of(Desk(model).answer),
    "a partial": lambda model: graph_of(functools.partial(ask, model)),
    "a subgraph": in_a_subgraph,
    "a global": in_a_global,
    "a tool": in_a_tool,
    "a tool by its class": in_a_class,
    "a task": in_a_task,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_attach_finds_a_model_in_every_holder(
    model: Any, twice: Any, tape: Path, holder: str
) -> None:
    """It returns the same object, which then replays without ambient patching."""
    made = HOLDERS[holder](model())
    assert attach(made) is made
    plain = holder in {"the model", "a chain", "a fallback"}
    state = "hello" if plain else {"messages": [AIMessage("", tool_calls=[CALL])]}
    if holder == "an agent":
        state = {"messages": [("user", "hello")]}
    recorded, replayed = twice(lambda: text(made.invoke(state)), ambient=False)
    assert replayed == recorded
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 1
    detach(made)


def text(result: Any) -> str:
    """Return the text of a result."""
    last = result["messages"][-1] if isinstance(result, dict) else result
    return str(getattr(last, "content", last))


def test_attach_finds_the_model_of_a_middleware(model: Any, tape: Path) -> None:
    """A model that only a middleware holds is bound too."""
    summarizer = model()
    agent = attach(create_agent(model(), [], middleware=[SummarizationMiddleware(summarizer)]))
    with tracefork.record(tape, ambient=False):
        summarizer.invoke("hello")
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 1
    detach(agent)


def test_detach_undoes_any_number_of_attaches(agent: Any, drive: Any, tape: Path) -> None:
    """After it, only ambient patching records anything."""
    graph = agent()
    assert detach(attach(attach(graph))) is graph
    with tracefork.record(tape, ambient=False):
        drive(graph, "invoke")
    with tracefork.Tape.open(tape) as opened:
        assert (opened.exchanges, opened.steps) == ([], [])


def test_shared_model_stays_bound_until_both_graphs_are_detached(model: Any, tape: Path) -> None:
    """The call after the second `detach` is not recorded."""
    asked = model()
    one, other = (attach(graph_of(functools.partial(ask, asked))) for _ in range(2))
    detach(one)
    with tracefork.record(tape, ambient=False):
        other.invoke({"messages": []})
        detach(other)
        other.invoke({"messages": []})
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 1


def test_attach_adds_no_handler_outside_a_session(agent: Any) -> None:
    """An attached graph runs with the caller's own handlers only."""
    seen: list[list[str]] = []

    class Witness(BaseCallbackHandler):
        run_inline = True

        def on_chain_start(self, *_: object, **__: object) -> None:
            from langchain_core.runnables.config import (
                ensure_config,
                get_callback_manager_for_config,
            )

            handlers = get_callback_manager_for_config(ensure_config()).handlers
            seen.append([type(handler).__name__ for handler in handlers])

    graph = attach(agent())
    graph.invoke({"messages": [("user", "hello")]}, {"callbacks": [Witness()]})
    assert not any("TracingHandler" in names for names in seen)
    detach(graph)


def test_attach_adds_the_handler_inside_a_session(agent: Any, tape: Path) -> None:
    """The control of the test above."""
    from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config

    graph = attach(agent())
    with tracefork.record(tape):
        handlers = get_callback_manager_for_config(ensure_config()).handlers
    assert [type(handler).__name__ for handler in handlers] == ["TracingHandler"]
    assert get_callback_manager_for_config(ensure_config()).handlers == []
    detach(graph)


def test_callbacks_of_a_call_do_not_replace_the_handler(agent: Any, tape: Path) -> None:
    """Handlers passed to a call run beside the one of tracefork."""
    graph = attach(agent())
    config = {"callbacks": [BaseCallbackHandler()]}
    with tracefork.record(tape):
        graph.invoke({"messages": [("user", "hello")]}, config)
    with tracefork.Tape.open(tape) as opened:
        assert [step.kind for step in opened.steps] == ["run", "node", "model"]
    detach(graph)


def test_attach_refuses_other_objects() -> None:
    """The error names the object, and tells to compile a graph that is not compiled."""
    with pytest.raises(tracefork.UsageError, match=r"StateGraph.*Compile the graph first"):
        attach(StateGraph(State))
    with pytest.raises(tracefork.UsageError, match=r"cannot attach to builtins\.str"):
        attach("graph")


def test_adapter_is_found_by_its_entry_point() -> None:
    """So `tracefork doctor` lists it among the installed adapters."""
    assert ADAPTER in [adapter for _, adapter in found_adapters()]
