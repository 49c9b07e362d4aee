"""The declared effect of a tool decides whether `attach` binds it and a fork repeats it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import tracefork_core as tracefork
from tracefork_langgraph import attach, bind_tool, bind_tools, detach


def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order} is lost"


def made(**options: Any) -> BaseTool:
    """Return a tool with the given declarations."""
    return StructuredTool.from_function(look_up, **options)


SAID: dict[str, tuple[dict[str, Any], str | None]] = {
    "metadata": ({"metadata": {"effect": "pure"}}, "pure"),
    "tag": ({"tags": ["shop", "effect:read"]}, "read"),
    "hint": ({"metadata": {"readOnlyHint": True, "title": "Look up"}}, "read"),
    "no hint": ({"metadata": {"readOnlyHint": False}}, "write"),
    "nothing": ({}, None),
}


@pytest.mark.parametrize("said", SAID)
def test_tool_declares_its_effect(tape: Path, said: str) -> None:
    """By metadata, a tag or the hints of an MCP server. A tool without any is not bound."""
    options, effect = SAID[said]
    bound = attach(made(**options))
    with tracefork.record(tape):
        bound.invoke({"order": 17})
    with tracefork.Tape.open(tape) as opened:
        found = [(one.url, one.aside.effect) for one in opened.exchanges]
    assert found == ([] if effect is None else [("tool:look_up", effect)])
    detach(bound)


def test_decorated_function_is_one_exchange(tape: Path) -> None:
    """`@tracefork.tool` below LangChain's decorator declares the effect of the one exchange."""

    class Lost(Exception):
        """Raised by design."""

    @tool
    @tracefork.tool(effect="write", raises=(Lost,))
    def refund(order: int, euros: float = 9.5) -> str:
        """Pay back."""
        raise Lost(f"{order}: {euros}")

    attach(refund)
    for session in (tracefork.record, tracefork.replay):
        with pytest.raises(Lost, match=r"17: 9\.5"), session(tape):
            refund.invoke({"order": 17})
    with tracefork.Tape.open(tape) as opened:
        assert [(one.url, one.aside.effect) for one in opened.exchanges] == [
            ("tool:refund", "write")
        ]
    detach(refund)


def test_unknown_effect_is_refused() -> None:
    """A typing error does not count as a write."""
    with pytest.raises(tracefork.UsageError, match=r"look_up must .*'reads'"):
        attach(made(metadata={"effect": "reads"}))
    with pytest.raises(tracefork.UsageError, match=r"look_up must .*'none'"):
        bind_tool(made(), effect="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("listed", ["ValueError", ["ValueError"], [KeyboardInterrupt]])
def test_raises_accepts_only_exception_classes(listed: Any) -> None:
    """Neither the name of a class, nor an exception that ends the program."""
    with pytest.raises(tracefork.UsageError, match=r"look_up must list classes of Exc"):
        bind_tool(made(), raises=listed)


def test_tool_that_receives_the_store_stays_live(tape: Path, exchanges: Any) -> None:
    """A fork would lack what it puts there, as the control with `bind_tool` shows."""

    @tool
    def remember(fact: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Remember."""
        store.put(("facts",), fact, {})
        return "remembered"

    def kept(session: Any) -> int:
        store = InMemoryStore()
        with session:
            remember.invoke({"fact": "a", "store": store})
            return len(store.search(("facts",)))

    bind_tools(remember)
    assert kept(tracefork.record(tape)) == kept(tracefork.replay(tape)) == 1
    assert exchanges() == []
    bind_tool(remember)
    assert kept(tracefork.record(tape, overwrite=True)) == 1
    assert kept(tracefork.replay(tape)) == 1
    assert kept(tracefork.fork(tape, 0, writes="stub")) == 0
    assert exchanges() == [("remember", {"fact": "a"})]


class Shop:
    """A graph that looks up an order, and refunds it if it is lost."""

    def __init__(self, done: Any, **says: Any) -> None:
        def refund(order: int) -> str:
            """Pay back."""
            done.append(f"refund {order}")
            return f"refunded {order}"

        self.find = made(metadata={"effect": "read"})
        self.pay = StructuredTool.from_function(refund, **says)
        builder = StateGraph(MessagesState).add_node("shop", self.node).add_edge(START, "shop")
        self.graph = bind_tools(attach(builder.compile()))

    def node(self, _: object) -> dict[str, Any]:
        found = self.find.invoke({"order": 17})
        said = self.pay.invoke({"order": 17}) if "lost" in found else "nothing"
        return {"messages": [("user", f"{found}, {said}")]}

    def run(self) -> str:
        return str(self.graph.invoke({"messages": []})["messages"][-1].content)


def test_fork_does_not_repeat_a_write(tape: Path, done: Any) -> None:
    """It refuses, stubs or allows the write. A tool with an unknown effect counts as a write."""
    shop = Shop(done)
    with tracefork.record(tape):
        shop.run()
    assert done.now() == ["refund 17"]
    change = tracefork.Replace("order 17 is lost, too")
    with pytest.raises(tracefork.WriteError, match="CALL tool:refund"):
        with tracefork.fork(tape, 0, change):
            shop.run()
    with tracefork.fork(tape, 0, change, writes="stub", to=tape.with_name("stub")) as branch:
        assert shop.run() == "order 17 is lost, too, refunded 17"
    assert done.now() == []
    with tracefork.fork(tape, 0, change, writes="allow", to=tape.with_name("done")):
        shop.run()
    assert done.now() == ["refund 17"]
    with tracefork.replay(branch.path):
        assert shop.run() == "order 17 is lost, too, refunded 17"


def test_fork_calls_a_tool_with_a_changed_argument(tape: Path, done: Any) -> None:
    """`Edit` changes an argument of the recorded call."""
    shop = Shop(done, tags=["effect:read"])
    with tracefork.record(tape):
        shop.run()
    change = tracefork.Edit(values={"/order": 18})
    with tracefork.fork(tape, 0, change, to=tape.with_name("branch")):
        assert shop.run() == "order 18 is lost, refunded 17"


def test_fork_replaces_content_and_drops_the_artifact(tape: Path) -> None:
    """Text replaces the first of the two parts of a result."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[int]]:
        """Search."""
        return f"about {query}", [1, 2]

    attach(bind_tools(search))
    call = {"name": "search", "args": {"query": "tapes"}, "id": "1", "type": "tool_call"}
    with tracefork.record(tape):
        assert search.invoke(call).artifact == [1, 2]
    with tracefork.fork(tape, 0, tracefork.Replace("nothing"), to=tape.with_name("branch")):
        given = search.invoke(call)
    assert (given.content, given.artifact) == ("nothing", None)
    detach(search)
