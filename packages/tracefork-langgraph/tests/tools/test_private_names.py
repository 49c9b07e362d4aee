"""Private names of LangChain and LangGraph that bound tools depend on."""

from __future__ import annotations

import dataclasses
from functools import wraps
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt


def test_task_keeps_its_answers_in_the_scratchpad() -> None:
    """tool_interrupts.py reads and replaces `__pregel_scratchpad` in the configuration."""
    seen: list[tuple[list[Any], Any]] = []

    def node(_: object) -> dict[str, Any]:
        config: Any = var_child_runnable_config.get()
        pad = config["configurable"]["__pregel_scratchpad"]
        seen.append((list(pad.resume), pad.get_null_resume(consume=False)))
        assert {"interrupt_counter", "resume"} <= {it.name for it in dataclasses.fields(pad)}
        interrupt("sure?")
        return {}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    graph, thread = (
        builder.compile(checkpointer=InMemorySaver()),
        {"configurable": {"thread_id": 1}},
    )
    graph.invoke({"messages": []}, thread)
    graph.invoke(Command(resume="yes"), thread)
    assert seen == [([], None), ([], "yes")], "LangGraph keeps the answers of a task elsewhere"


def test_run_in_the_dictionary_of_a_tool_is_called() -> None:
    """tools.py puts `_run` into the tool's dictionary, which precedes its class."""

    @tool
    def echo(text: str) -> str:
        """Echo."""
        return text

    work = echo._run
    vars(echo)["_run"] = wraps(work)(lambda *args, **kwargs: work(*args, **kwargs) + "!")
    assert echo.invoke({"text": "a"}) == "a!", "LangChain no longer calls `self._run`"
