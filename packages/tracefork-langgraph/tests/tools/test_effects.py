"""What a tool says of itself decides whether `attach` binds it, and what a fork may do again."""

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
    """Return a tool of a name, with what it says of itself."""
    return StructuredTool.from_function(look_up, **options)


SAID: dict[str, tuple[dict[str, Any], str | None]] = {
    "metadata": ({"metadata": {"effect": "pure"}}, "pure"),
    "tag": ({"tags": ["shop", "effect:read"]}, "read"),
    "hint": ({"metadata": {"readOnlyHint": True, "title": "Look up"}}, "read"),
    "no hint": ({"metadata": {"readOnlyHint": False}}, "write"),
    "nothing": ({}, None),
}


@pytest.mark.parametrize("said", SAID)
def test_a_tool_says_what_it_does(tape: Path, said: str) -> None:
    """By metadata, a tag or the hints of an MCP server; a tool that says nothing runs as before."""
    options, effect = SAID[said]
    bound = attach(made(**options))
    with tracefork.record(tape):
        bound.invoke({"order": 17})
    with tracefork.Tape.open(tape) as opened:
        found = [(one.url, one.aside.effect) for one in opened.exchanges]
    assert found == ([] if effect is None else [("tool:look_up", effect)])
    detach(bound)


def test_a_marked_function_is_one_exchange(tape: Path) -> None:
    """`@tracefork.tool` below LangChain's decorator says it: recorded once, under the tool."""

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


def test_an_effect_that_is_none_is_refused() -> None:
    """A typing error is not taken for a write."""
    with pytest.raises(tracefork.UsageError, match=r"look_up must .*'reads'"):
        attach(made(metadata={"effect": "reads"}))
    with pytest.raises(tracefork.UsageError, match=r"look_up must .*'none'"):
        bind_tool(made(), effect="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("listed", ["ValueError", ["ValueError"], [KeyboardInterrupt]])
def test_what_is_listed_has_to_be_an_exception(listed: Any) -> None:
    """The name of a class is none, and what ends a program is none that a tool comes back with."""
    with pytest.raises(tracefork.UsageError, match=r"look_up must list classes of Exc"):
        bind_tool(made(), raises=listed)


def test_a_tool_with_the_agents_store_is_left_live(tape: Path, exchanges: Any) -> None:
    """What it puts there would be missing at replay, and is where it is bound all the same."""

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
    assert kept(tracefork.replay(tape)) == 0
    assert exchanges() == [("remember", {"fact": "a"})]


class Shop:
    """A graph that looks an order up, and pays it back if it is lost."""

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


def test_a_fork_repeats_no_write(tape: Path, done: Any) -> None:
    """Refused, answered as recorded, or done: what is not known to read counts as a write."""
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


def test_a_fork_asks_a_tool_otherwise(tape: Path, done: Any) -> None:
    """An argument that a fork changes is the one that the tool is called with."""
    shop = Shop(done, tags=["effect:read"])
    with tracefork.record(tape):
        shop.run()
    change = tracefork.Edit(values={"/order": 18})
    with tracefork.fork(tape, 0, change, to=tape.with_name("branch")):
        assert shop.run() == "order 18 is lost, refunded 17"


def test_a_fork_gives_content_without_an_artifact(tape: Path) -> None:
    """Text in the place of a result of two parts is the first of them."""

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
