"""The chatbot of LangGraph's tutorials: an agent with a tool, and a checkpointer of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from functools import cache
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from openai import Timeout

import tracefork_core as tracefork

THREAD: Any = {"configurable": {"thread_id": "customer 7"}}
MEMORY = InMemorySaver()


@tool
@tracefork.tool(effect="read")
def lookup_order(order: int) -> str:
    """Look up an order."""
    return f"order {order} was delivered"


@contextmanager
def _sqlite(place: str) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(place) as saver:
        yield saver


@asynccontextmanager
async def _async_sqlite(place: str) -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(place) as saver:
        yield saver


@contextmanager
def _by_hand(place: str) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(place, check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


@contextmanager
def _postgres(place: str) -> Iterator[Any]:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(place) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def _async_postgres(place: str) -> AsyncIterator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with AsyncPostgresSaver.from_conn_string(place) as saver:
        await saver.setup()
        yield saver


@contextmanager
def _memory(_: str) -> Iterator[InMemorySaver]:
    yield MEMORY


SYNC: dict[str, Any] = {
    "sqlite": _sqlite,
    "by hand": _by_hand,
    "postgres": _postgres,
    "memory": _memory,
}
ASYNC: dict[str, Any] = {
    "async sqlite": _async_sqlite,
    "async postgres": _async_postgres,
}


@cache
def model_of(url: str) -> Any:
    """Return a chat model that asks the server of the tests."""
    return init_chat_model(
        "some-model",
        model_provider="openai",
        base_url=f"{url}/v1",
        api_key="none",
        timeout=Timeout(60),
        default_headers={"Connection": "close"},
    )


def _agent(url: str, saver: Any) -> Any:
    return create_agent(model_of(url), [lookup_order], checkpointer=saver)


def run(url: str, kind: str, place: str, *questions: str) -> list[str]:
    """Ask the agent on its thread, open the checkpointer for each question; return its state."""
    said: list[str] = []
    for question in questions:
        given = {"messages": [("user", question)]}
        if kind in ASYNC:
            said = asyncio.run(_achat(url, ASYNC[kind](place), given))
            continue
        opened: AbstractContextManager[Any] = SYNC[kind](place)
        with opened as saver:
            agent = _agent(url, saver)
            agent.invoke(given, THREAD)
            states = list(agent.get_state_history(THREAD, limit=3))
            said = _said(agent.get_state(THREAD), states)
    return said


async def _achat(url: str, opened: Any, given: Any) -> list[str]:
    async with opened as saver:
        agent = _agent(url, saver)
        await agent.ainvoke(given, THREAD)
        states = [state async for state in agent.aget_state_history(THREAD, limit=3)]
        return _said(await agent.aget_state(THREAD), states)


def _said(state: Any, history: list[Any]) -> list[str]:
    texts = [str(message.content) for message in state.values["messages"]]
    return [*texts, *(one.config["configurable"]["checkpoint_id"] for one in history)]
