"""A divergence passes through every error handler of LangGraph.

Each test changes one letter of the prompt. `attempts` counts the refused requests: a divergence is
final, so nothing may retry a refused request.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

import tracefork_core as tracefork

BEFORE, AFTER = "You help.", "You helq."


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


class Swallowed:
    """Runs an agent and keeps what it raised, like a program with a bare `except`."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def run(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            self.error = error


@pytest.fixture
def diverge(
    tape: Path, attempts: list[str]
) -> Callable[..., tuple[BaseException | None, tracefork.DivergenceError]]:
    """Record one prompt, replay another; return the agent's error and the error of the block."""

    def run(
        make: Callable[[str], Any], action: Callable[[Any], object]
    ) -> tuple[BaseException | None, tracefork.DivergenceError]:
        graph = make(BEFORE)
        with tracefork.record(tape):
            action(graph)
        attempts.clear()
        graph = make(AFTER)
        swallowed = Swallowed()
        with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
            swallowed.run(lambda: action(graph))
        assert (caught.value.divergence.recorded, caught.value.divergence.actual) == (BEFORE, AFTER)
        return swallowed.error, caught.value

    return run


def invoke(graph: Any) -> object:
    return graph.invoke({"messages": [("user", "hello")]})


def one_node(ask: Callable[[Any], object], **options: Any) -> Any:
    """Compile a graph with one node that adds the result of `ask` to its messages."""

    def node(state: State) -> dict[str, Any]:
        return {"messages": [ask(state)]}

    return StateGraph(State).add_node("node", node, **options).add_edge(START, "node").compile()


@pytest.mark.parametrize("brand", ["chat", "anthropic"])
def test_a_changed_prompt_is_a_divergence(
    agent: Any, drive: Any, diverge: Any, attempts: list[str], brand: str, way: str
) -> None:
    """The block raises it, the SDK's error contains it, and the request is sent once."""
    met, _ = diverge(lambda prompt: agent(brand, prompt), lambda graph: drive(graph, way))
    assert "recorded  You help." in str(met).replace("\\n", "\n")
    assert len(attempts) == 1


@pytest.mark.parametrize("brand", ["chat", "anthropic"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages", "events"])
def test_attached_agent_gets_the_divergence_error_itself(
    agent: Any, attached: Any, drive: Any, diverge: Any, attempts: list[str], brand: str, how: str
) -> None:
    """The error inside names the step too."""
    met, raised = diverge(
        lambda prompt: attached(agent(brand, prompt)), lambda graph: drive(graph, how)
    )
    assert isinstance(met, tracefork.DivergenceError)
    assert met.divergence == raised.divergence
    assert (raised.divergence.step or "").startswith("support ▸ model ▸ Chat")
    assert len(attempts) == 1


def test_langchain_does_not_log_a_divergence_as_a_handler_error(
    agent: Any, attached: Any, diverge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler raises it on purpose, and the agent gets it."""
    diverge(lambda prompt: attached(agent("chat", prompt)), invoke)
    assert "TracingHandler" not in caplog.text


@pytest.mark.parametrize("attaching", [True, False])
def test_retry_policy_does_not_retry_a_divergence(
    model: Any,
    attached: Any,
    diverge: Any,
    attempts: list[str],
    attaching: bool,
) -> None:
    """A node with three tries runs once."""
    asked = model()
    tries: list[str] = []

    def make(prompt: str) -> Any:
        tries.clear()

        def ask(_: object) -> object:
            tries.append(prompt)
            return asked.invoke(prompt)

        policy = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False)
        graph = one_node(ask, retry_policy=policy)
        return attached(graph) if attaching else graph

    met, _ = diverge(make, invoke)
    assert "diff" in str(met)
    assert (len(attempts), len(tries)) == (1, 1)


def test_fallback_does_not_hide_a_divergence(
    model: Any, attached: Any, diverge: Any, attempts: list[str]
) -> None:
    """The fallback model is refused too: one attempt each, and no answer."""

    def make(prompt: str) -> Any:
        chain = model().with_fallbacks([model()])
        return attached(one_node(lambda _: chain.invoke(prompt)))

    met, _ = diverge(make, invoke)
    assert isinstance(met, tracefork.DivergenceError)
    assert len(attempts) == 2


def test_tool_node_that_handles_errors_does_not_hide_a_divergence(
    model: Any, attached: Any, diverge: Any, attempts: list[str]
) -> None:
    """The error becomes a tool message, and the block still raises it."""
    expert = model()

    def make(prompt: str) -> Any:
        def ask_expert(topic: str) -> str:
            """Ask an expert."""
            return str(expert.invoke(prompt).content)

        tools = ToolNode([ask_expert], handle_tool_errors=True)
        return attached(StateGraph(State).add_node("t", tools).add_edge(START, "t").compile())

    call = {"name": "ask_expert", "args": {"topic": "a"}, "id": "call_1"}
    answers: list[Any] = []

    def action(graph: Any) -> None:
        answers.append(graph.invoke({"messages": [AIMessage("", tool_calls=[call])]}))

    met, _ = diverge(make, action)
    assert met is None
    assert "differs from recorded exchange" in answers[-1]["messages"][-1].content
    assert len(attempts) == 1


def test_divergence_names_the_model_inside_a_tool(
    model: Any, attached: Any, diverge: Any, attempts: list[str]
) -> None:
    """Not the agent's own model."""
    expert = model()

    def make(prompt: str) -> Any:
        def ask_expert(topic: str) -> str:
            """Ask an expert."""
            return str(expert.invoke(prompt).content)

        return attached(create_agent(model(), [ask_expert], name="boss"))

    question = '@call ask_expert {"topic": "a"}\n@then\n@say done'
    met, raised = diverge(make, lambda graph: graph.invoke({"messages": [("user", question)]}))
    assert isinstance(met, tracefork.DivergenceError)
    assert raised.divergence.step == "boss ▸ tools ▸ ask_expert ▸ ChatOpenAI"
    assert len(attempts) == 2  # The agent's call is answered, the tool's is refused.


def test_unchanged_agent_does_not_diverge(
    agent: Any, attached: Any, tape: Path, attempts: list[str]
) -> None:
    """The control: without the changed letter the replay completes."""
    graph = attached(agent("chat", BEFORE))
    with tracefork.record(tape):
        invoke(graph)
    with tracefork.replay(tape) as run:
        invoke(graph)
    assert run.digest == run.tape.digest
    assert len(attempts) == 2
