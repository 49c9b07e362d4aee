"""An agent with a long-term memory: it asks about what its store holds, and adds to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore
from typing_extensions import TypedDict

try:
    from .chatbot import model_of
except ImportError:  # In a process of its own, this is no part of a package.
    from chatbot import model_of  # type: ignore[import-not-found, no-redef]

FACTS = ("facts",)
MEMORY = InMemoryStore()


class State(TypedDict, total=False):
    topic: str
    said: str


@contextmanager
def _sqlite(place: str) -> Iterator[SqliteStore]:
    with SqliteStore.from_conn_string(place) as store:
        store.setup()
        yield store


@asynccontextmanager
async def _async_sqlite(place: str) -> AsyncIterator[AsyncSqliteStore]:
    async with AsyncSqliteStore.from_conn_string(place) as store:
        await store.setup()
        yield store


@contextmanager
def _postgres(place: str) -> Iterator[BaseStore]:
    from langgraph.store.postgres import PostgresStore

    with PostgresStore.from_conn_string(place) as store:
        store.setup()
        yield store


@contextmanager
def _memory(_: str) -> Iterator[BaseStore]:
    yield MEMORY


SYNC: dict[str, Any] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgres": _postgres,
}
ASYNC: dict[str, Any] = {"async sqlite": _async_sqlite}


def run(url: str, kind: str, place: str, *topics: str) -> list[str]:
    """Ask about each topic; return what was said, and what the store holds in the end."""
    if kind in ASYNC:
        return asyncio.run(_arun(url, ASYNC[kind](place), topics))
    model = model_of(url)

    def remember(state: State, *, store: BaseStore) -> State:
        said = model.invoke(_question(state["topic"], store.search(FACTS))).text
        before = store.get(FACTS, "last")
        store.put(FACTS, state["topic"], {"said": said})
        store.put(FACTS, "last", {"said": f"{said}, not {before and before.value['said']}"})
        return {"said": said}

    with SYNC[kind](place) as store:
        graph = _graph(remember, store)
        said = [graph.invoke({"topic": topic})["said"] for topic in topics]
        return [*said, *_held(store.search(FACTS)), str(store.list_namespaces())]


async def _arun(url: str, opened: Any, topics: tuple[str, ...]) -> list[str]:
    model = model_of(url)

    async def remember(state: State, *, store: BaseStore) -> State:
        said = (await model.ainvoke(_question(state["topic"], await store.asearch(FACTS)))).text
        before = await store.aget(FACTS, "last")
        await store.aput(FACTS, state["topic"], {"said": said})
        await store.aput(FACTS, "last", {"said": f"{said}, not {before and before.value['said']}"})
        return {"said": said}

    async with opened as store:
        graph = _graph(remember, store)
        said = [(await graph.ainvoke({"topic": topic}))["said"] for topic in topics]
        held = _held(await store.asearch(FACTS))
        return [*said, *held, str(await store.alist_namespaces())]


def _graph(remember: Any, store: Any) -> Any:
    builder = StateGraph(State).add_node("remember", remember).add_edge(START, "remember")
    return builder.compile(store=store)


def _question(topic: str, found: list[Any]) -> str:
    return f"{topic}? known: {'; '.join(_held(found))}"


def _held(items: list[Any]) -> list[str]:
    return sorted(f"{item.key}={item.value['said']} at {item.created_at}" for item in items)
