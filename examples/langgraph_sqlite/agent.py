"""A LangGraph agent with a SqliteSaver, as the tutorials write it.

The database is in memory. A file would still hold the recorded messages at replay, and the graph
would send them to the model too. To keep threads on disk, use a TapeSaver.
"""

import sqlite3
import uuid

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

MODEL = ChatOpenAI(model="gpt-5-mini")


def call_model(state: MessagesState) -> dict:
    """Call the model."""
    return {"messages": [MODEL.invoke(state["messages"])]}


def main(question: str = "Where is order 17?") -> str:
    """Run the graph once on a new thread, and return the last message."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", call_model)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    with sqlite3.connect(":memory:", check_same_thread=False) as database:
        graph = builder.compile(checkpointer=SqliteSaver(database))
        thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
        state = graph.invoke({"messages": [("user", question)]}, thread)
    print(state["messages"][-1].content)
    return state["messages"][-1].content


if __name__ == "__main__":
    main()
