"""Results of tools come back unchanged: messages, commands, artifacts, objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime
from langgraph.types import Command, Send
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_langgraph import bind_tool, bind_tools

PICTURE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@dataclass
class Order:
    number: int
    lines: tuple[str, ...]


@tool
def plain(order: int) -> dict[str, Any]:
    """Return what JSON has words for."""
    return {"order": order, "lines": ["one turntable"], "langchain": "Command"}


@tool
def annotated(order: int) -> Order:
    """Return an object of the class that the annotation names."""
    return Order(order, ("one turntable",))


@tool(response_format="content_and_artifact")
def artifact(order: int) -> tuple[list[str | dict[str, Any]], list[Document]]:
    """Return a picture and the documents that it is from."""
    found = [Document("page one", metadata={"order": order}, id="1"), Document("page two")]
    return ["a picture", PICTURE], found


@tool
def message(order: int, answers: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Return a message that says it failed."""
    return ToolMessage(
        "gone", tool_call_id=answers, name="message", status="error", artifact={order: b"1"}
    )


@tool
def command(order: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Return what changes the state, and where to go."""
    told = [
        ToolMessage("moved", tool_call_id=tool_call_id, name="command"),
        HumanMessage("and now?", id="h", additional_kwargs={"by": "tool"}),
        AIMessage("that", tool_calls=[{"name": "x", "args": {"a": 1}, "id": "c"}], id="a"),
        RemoveMessage("a"),
    ]
    update = {"messages": told, "order": {"order": (order, {1, 2})}}
    return Command(update=update, goto=[Send("after", {"order": order}), "after"])


TOOLS = {it.name: it for it in (plain, annotated, artifact, message, command)}


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_result_comes_back_unchanged(tape: Path, name: str, how: str) -> None:
    """Called as a model calls it, a tool returns the same to LangChain in both runs."""
    bound = bind_tool(TOOLS[name].model_copy())
    call = {"name": name, "args": {"order": 17}, "id": "call_1", "type": "tool_call"}

    async def run() -> Any:
        return await bound.ainvoke(call) if how == "ainvoke" else bound.invoke(call)

    live = await run()
    with tracefork.record(tape):
        recorded = await run()
    with tracefork.replay(tape):
        replayed = await run()
    assert replayed == recorded == live
    assert type(replayed) is type(live)


def test_an_object_comes_back_as_its_class(tape: Path) -> None:
    """A tool that is called without a model's call returns the object itself."""
    bound = bind_tool(annotated.model_copy())
    with tracefork.record(tape):
        recorded = bound.invoke({"order": 17})
    with tracefork.replay(tape):
        assert bound.invoke({"order": 17}) == recorded == Order(17, ("one turntable",))


def test_a_command_moves_the_graph_at_replay(calls: Any, twice: Any) -> None:
    """State and destination are those of the recorded `Command`."""

    class State(MessagesState):
        order: dict[str, Any]

    def after(state: State) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"after {state.get('order')}", id="last")]}

    builder = StateGraph(State).add_node("tools", ToolNode([command.model_copy()]))
    graph = bind_tools(builder.add_node("after", after).add_edge(START, "tools").compile())
    recorded, replayed = twice(lambda: graph.invoke(calls(("command", {"order": 17}))))
    assert [m.content for m in replayed["messages"]] == [m.content for m in recorded["messages"]]
    assert replayed["order"] == {"order": (17, {1, 2})}
    assert [m.content for m in replayed["messages"]] == ["", "moved", "and now?", "after 17"]


def test_replayed_message_has_the_id_of_the_new_call(tape: Path) -> None:
    """For some models LangChain generates the id of a call, so it differs in a replay."""
    bound = bind_tool(message.model_copy())
    call = {"name": "message", "args": {"order": 17}, "type": "tool_call"}
    with tracefork.record(tape):
        bound.invoke({**call, "id": "call_1"})
    with tracefork.replay(tape):
        assert bound.invoke({**call, "id": "call_2"}).tool_call_id == "call_2"


def test_call_id_is_not_compared_if_the_schema_lacks_it(tape: Path) -> None:
    """LangChain then passes it by its name."""

    class Asked(BaseModel):
        order: int

    work = cast(StructuredTool, command).func
    plain = StructuredTool.from_function(work, name="command", args_schema=Asked)
    call = {"name": "command", "args": {"order": 17}, "type": "tool_call"}
    bound = bind_tool(plain)
    try:
        plain.invoke({**call, "id": "call_0"})
    except TypeError:  # An old LangChain does not pass it, bound or not.
        with pytest.raises(TypeError, match="tool_call_id"), tracefork.record(tape):
            bound.invoke({**call, "id": "call_1"})
        return
    with tracefork.record(tape):
        bound.invoke({**call, "id": "call_1"})
    with tracefork.replay(tape):
        told = bound.invoke({**call, "id": "call_2"}).update["messages"]
    assert told[0].tool_call_id == "call_2"


def test_injected_state_is_compared(
    calling: Any, calls: Any, said: Any, tape: Path, exchanges: Any
) -> None:
    """By its values, without the ids of messages. A value without JSON is compared by its class."""

    class State(MessagesState):
        user: str
        lock: Any
        seen: Any

    @tool
    def balance(
        currency: str,
        user: Annotated[str, InjectedState("user")],
        state: Annotated[dict[str, Any], InjectedState],
        runtime: ToolRuntime,
    ) -> str:
        """Tell the balance."""
        return f"{user} has 3 {currency}, says {runtime.tool_call_id}"

    graph = calling(balance, state=State)

    def run(user: str, lock: object, city: str = "Oslo") -> str:
        seen = {17: {("city", city), (1, 2), None}}
        state = calls(("balance", {"currency": "euros"}), user=user, lock=lock, seen=seen)
        return str(said(graph, state)[0].content)

    with tracefork.record(tape):
        recorded = run("ada", tracefork)
    ((_, told),) = exchanges()
    assert (told["currency"], told["user"]) == ("euros", "ada")
    assert told["state"]["lock"] == told["runtime"]["state"]["lock"] == "a builtins.module"
    with tracefork.replay(tape):
        assert run("ada", tracefork) == recorded == "ada has 3 euros, says call_0"
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        run("bob", tracefork)
    assert "/user" in str(caught.value)
    with pytest.raises(tracefork.DivergenceError, match="/seen/0/1"), tracefork.replay(tape):
        run("ada", tracefork, "Rome")


def called(order: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "x", "args": {"order": order}, "id": str(order)}])


@pytest.mark.parametrize(
    ("then", "now", "pointer"),
    [
        (HumanMessage("a", id="1"), HumanMessage("a", id="2"), None),
        (HumanMessage("a"), HumanMessage("b"), "/told/0/content"),
        (HumanMessage("a"), SystemMessage("a"), "/told/0/type"),
        (called(17), called(18), "/told/0/tool_calls/0/args/order"),
        (
            ToolMessage("a", tool_call_id="1"),
            ToolMessage("a", tool_call_id="1", status="error"),
            "/told/0/status",
        ),
    ],
)
def test_messages_of_the_state_are_compared(
    tape: Path, then: object, now: object, pointer: str | None
) -> None:
    """By role, content and tool calls, not by id."""

    @tool
    def count(told: Annotated[list[Any], InjectedState("messages")]) -> int:
        """Count."""
        return len(told)

    bind_tool(count)
    with tracefork.record(tape):
        count.invoke({"told": [then]})
    if pointer is None:
        with tracefork.replay(tape):
            assert count.invoke({"told": [now]}) == 1
        return
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        count.invoke({"told": [now]})
    assert caught.value.divergence.pointer == pointer


def test_context_is_compared_if_the_tool_receives_it(calling: Any, calls: Any, tape: Path) -> None:
    """The divergence points into the runtime's context."""

    @tool
    def whoami(runtime: ToolRuntime[dict[str, Any], Any]) -> str:
        """Tell the user."""
        return str(runtime.context["user"])

    graph = calling(whoami)
    with tracefork.record(tape):
        graph.invoke(calls(("whoami", {})), context={"user": "ada"})
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        graph.invoke(calls(("whoami", {})), context={"user": "bob"})
    assert caught.value.divergence.pointer == "/runtime/context/user"


class Frame:
    """A class that a tape cannot store."""


@pytest.mark.parametrize(
    "result", [Frame(), Command(update={"frame": Frame()}), Command(update={"order": Order(1, ())})]
)
def test_unsupported_result_is_refused_by_name(tape: Path, result: object) -> None:
    """In the recording and in the replay alike."""

    @tool
    def frame() -> Any:
        """Return something."""
        return result

    bind_tool(frame)
    with tracefork.record(tape), pytest.raises(tracefork.UsageError, match=r"Frame|Order") as now:
        frame.invoke({})
    with tracefork.replay(tape), pytest.raises(tracefork.UsageError) as again:
        frame.invoke({})
    assert str(again.value) == str(now.value)


@pytest.mark.parametrize(
    "body",
    [
        {"langchain": "Order", "number": 17},
        {"langchain": "BaseTool", "name": "x"},
        {"langchain": ["Command"]},
        {"langchain": "Command", "run": "this"},
        {"langchain": "Send"},
        {"langchain": "dict", "pairs": [[[], 1]]},
        {"langchain": "ToolMessage", "content": {"no": "text"}},
    ],
)
def test_tape_cannot_create_other_classes(tape: Path, body: object) -> None:
    """It can only name classes of a fixed list, with their fields."""
    bound = bind_tool(plain.model_copy())
    with tracefork.record(tape):
        bound.invoke({"order": 17})
    change = tracefork.Replace(document=body)
    with pytest.raises(tracefork.ReplayError):
        with tracefork.fork(tape, 0, change, to=tape.with_name("branch.tape")):
            bound.invoke({"order": 17})
