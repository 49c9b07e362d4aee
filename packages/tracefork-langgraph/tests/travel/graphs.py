"""Graphs of the shapes that time travel meets. Their model never gives one answer twice."""

from __future__ import annotations

import asyncio
import operator
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import RetryPolicy, Send, interrupt

Ran = list[str]
"""The nodes in the order they began."""


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


class Node:
    """A node that sends its prompt, whatever the state, and notes that it ran."""

    def __init__(self, name: str, model: Any, ran: Ran, question: str = "the same prompt") -> None:
        self.name, self._model, self._ran, self._question = name, model, ran, question

    def __call__(self, state: Any) -> dict[str, Any]:
        self._ran.append(self.name)
        return self._said(state, self._model.invoke(self._question))

    async def asked(self, state: Any) -> dict[str, Any]:
        self._ran.append(self.name)
        return self._said(state, await self._model.ainvoke(self._question))

    def _said(self, state: Any, answer: Any) -> dict[str, Any]:
        mark = state.get("i", self.name) if isinstance(state, dict) else self.name
        return {"said": [f"{mark}: {answer.content}"]}


def both(node: Node) -> Any:
    """A node for sync and async runs."""
    return RunnableLambda(node, afunc=node.asked, name=node.name)


def row(nodes: Sequence[Node]) -> StateGraph[State]:
    """Some nodes in a row."""
    builder = StateGraph(State).add_sequence([(node.name, both(node)) for node in nodes])
    return builder.add_edge(START, nodes[0].name)


def five(model: Any, ran: Ran, **edited: str) -> StateGraph[State]:
    """Five nodes in a row, each with its own prompt."""
    questions = {**{f"n{i}": f"question {i}" for i in range(1, 6)}, **edited}
    return row([Node(name, model, ran, question) for name, question in questions.items()])


def parallel(model: Any, ran: Ran) -> StateGraph[State]:
    """Four parallel nodes that send the same prompt, and one that joins them."""
    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, both(Node(name, model, ran)))
        builder.add_edge(START, name)
        builder.add_edge(name, "join")
    return builder.add_node("join", both(Node("join", model, ran)))


def sends(model: Any, ran: Ran) -> StateGraph[State]:
    """Twenty copies of one node, all with the same prompt."""
    builder = StateGraph(State)
    builder.add_node("first", both(Node("first", model, ran)))
    builder.add_node("copy", both(Node("copy", model, ran)))
    builder.add_node("last", both(Node("last", model, ran)))
    builder.add_edge(START, "first").add_edge("copy", "last")
    return builder.add_conditional_edges(
        "first", lambda _: [Send("copy", {"i": i}) for i in range(20)], ["copy"]
    )


def nested(model: Any, ran: Ran) -> StateGraph[State]:
    """A graph as a node, and one that a node calls twice."""
    sub = row([Node("i1", model, ran), Node("i2", model, ran)]).compile()

    def caller(_: State) -> dict[str, Any]:
        ran.append("caller")
        return {"said": sub.invoke({"said": []})["said"] + sub.invoke({"said": []})["said"]}

    async def acaller(_: State) -> dict[str, Any]:
        ran.append("caller")
        first, second = await sub.ainvoke({"said": []}), await sub.ainvoke({"said": []})
        return {"said": first["said"] + second["said"]}

    builder = StateGraph(State)
    builder.add_node("before", both(Node("before", model, ran)))
    builder.add_node("sub", sub)
    builder.add_node("caller", RunnableLambda(caller, afunc=acaller, name="caller"))
    return builder.add_edge(START, "before").add_edge("before", "sub").add_edge("sub", "caller")


def loop(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that runs five times with the same prompt."""
    builder = StateGraph(State)
    builder.add_node("again", both(Node("again", model, ran)))
    builder.add_edge(START, "again")
    return builder.add_conditional_edges(
        "again", lambda state: END if len(state["said"]) >= 5 else "again", ["again", END]
    )


def gathered(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that sends four requests in parallel, and a node after it."""

    def ask(_: State) -> dict[str, Any]:
        ran.append("ask")
        return {"said": [one.content for one in model.batch([f"part {i}" for i in range(4)])]}

    async def asked(_: State) -> dict[str, Any]:
        ran.append("ask")
        answers = await asyncio.gather(*(model.ainvoke(f"part {i}") for i in range(4)))
        return {"said": [answer.content for answer in answers]}

    builder = StateGraph(State)
    builder.add_node("ask", RunnableLambda(ask, afunc=asked, name="ask"))
    builder.add_node("end", both(Node("end", model, ran)))
    return builder.add_edge(START, "ask").add_edge("ask", "end")


def drafts(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that sends the same prompt three times in parallel, and runs three times."""

    def draft(_: State) -> dict[str, Any]:
        ran.append("draft")
        return {"said": [one.content for one in model.batch(["draft"] * 3)]}

    async def adraft(_: State) -> dict[str, Any]:
        ran.append("draft")
        return {"said": [one.content for one in await model.abatch(["draft"] * 3)]}

    builder = StateGraph(State)
    builder.add_node("draft", RunnableLambda(draft, afunc=adraft, name="draft"))
    builder.add_edge(START, "draft")
    return builder.add_conditional_edges(
        "draft", lambda state: END if len(state["said"]) >= 9 else "draft", ["draft", END]
    )


def approval(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that asks a model and then a person, and a node after it."""
    ask = Node("ask", model, ran)

    def asking(state: State) -> dict[str, Any]:
        said = ask(state)["said"]
        return {"said": [*said, interrupt({"about": said})]}

    async def asked(state: State) -> dict[str, Any]:
        said = (await ask.asked(state))["said"]
        return {"said": [*said, interrupt({"about": said})]}

    builder = StateGraph(State)
    builder.add_node("ask", RunnableLambda(asking, afunc=asked, name="ask"))
    builder.add_node("act", both(Node("act", model, ran)))
    return builder.add_edge(START, "ask").add_edge("ask", "act")


def retried(model: Any, ran: Ran) -> StateGraph[State]:
    """Two nodes that fail at first, and run again."""
    policy = RetryPolicy(initial_interval=0.001, jitter=False)
    builder = StateGraph(State)
    for name in ("first", "last"):
        asks = both(Node(name, model, ran, f"{name} @fail 429 1"))
        builder.add_node(name, asks, retry_policy=policy)
    return builder.add_edge(START, "first").add_edge("first", "last")


SHAPES: dict[str, Callable[[Any, Ran], StateGraph[State]]] = {
    shape.__name__: shape
    for shape in (five, parallel, sends, nested, loop, gathered, drafts, retried)
}


def talking(model: Any, ran: Ran) -> StateGraph[MessagesState]:
    """Three nodes that each add a message and send all messages so far."""

    def node(name: str) -> Callable[[MessagesState], dict[str, Any]]:
        def talk(state: MessagesState) -> dict[str, Any]:
            ran.append(name)
            own = HumanMessage(f"{name} here", id=str(uuid.uuid4()))
            return {"messages": [own, model.invoke([*state["messages"], own])]}

        return talk

    builder = StateGraph(MessagesState)
    return builder.add_sequence([(f"n{i}", node(f"n{i}")) for i in range(3)]).add_edge(START, "n0")


def threaded(model: Any, ran: Ran) -> StateGraph[State]:
    """Three nodes; the middle one sends only from its own threads."""

    def asking(_: State) -> dict[str, Any]:
        ran.append("pool")
        with ThreadPoolExecutor(2) as pool:
            answers = pool.map(lambda i: model.invoke(f"part {i}").content, range(2))
            return {"said": list(answers)}

    builder = StateGraph(State).add_node("first", both(Node("first", model, ran, "first")))
    builder.add_node("pool", asking).add_node("last", both(Node("last", model, ran, "last")))
    return builder.add_edge(START, "first").add_edge("first", "pool").add_edge("pool", "last")
