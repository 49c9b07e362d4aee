"""The chatbot of LangGraph's tutorial, with a SqliteSaver, walks through the first hour."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.first_hour import Clerk, FirstHour

from tracefork_testkit import ProviderServer

AGENT = '''\
import sqlite3

from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def lookup_order(number: int) -> str:
    """Look up an order."""
    return {17: "delayed", 71: "on its way"}[number]


llm = init_chat_model("openai:gpt-5-mini").bind_tools([lookup_order])
builder = StateGraph(MessagesState)
builder.add_node("chatbot", lambda state: {"messages": [llm.invoke(state["messages"])]})
builder.add_node("tools", ToolNode([lookup_order]))
builder.add_edge(START, "chatbot")
builder.add_conditional_edges("chatbot", tools_condition)
builder.add_edge("tools", "chatbot")
connection = sqlite3.connect("checkpoints.db", check_same_thread=False)
graph = builder.compile(checkpointer=SqliteSaver(connection))


def main():
    config = {"configurable": {"thread_id": "1"}}
    question = {"role": "user", "content": "Where is order 17?"}
    return graph.invoke({"messages": [question]}, config)["messages"][-1].content


if __name__ == "__main__":
    print(main())
'''


@pytest.mark.many_processes
def test_the_tutorials_chatbot_walks_through_the_first_hour(tmp_path: Path) -> None:
    """Its tool is not on the tape, so forks are allowed to run it again. Its database is left."""
    (tmp_path / "agent.py").write_text(AGENT)
    with ProviderServer(Clerk()) as server:
        hour = FirstHour(tmp_path, server.url, writes=("--allow-writes",))
        hour.walk(at="1", text="It is lost.", kept=["checkpoints.db"])
