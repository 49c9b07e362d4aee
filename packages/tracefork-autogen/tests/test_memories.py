"""Memories and caches that outlive a run are neither read nor changed by a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CacheStore, Component
from autogen_core.memory import (
    ListMemory,
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.models import SystemMessage, UserMessage
from autogen_ext.models.cache import ChatCompletionCache
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


class Database(Memory):
    """A memory that outlives the run."""

    def __init__(self, rows: list[str]) -> None:
        self.rows = rows

    async def query(self, query: Any, cancellation_token: Any = None, **_: Any) -> Any:
        contents = [MemoryContent(content=row, mime_type="text/plain") for row in self.rows]
        return MemoryQueryResult(results=contents)

    async def update_context(self, model_context: Any) -> UpdateContextResult:
        found = await self.query("anything")
        rows = [str(content.content) for content in found.results]
        await model_context.add_message(SystemMessage(content=" ".join(rows)))
        return UpdateContextResult(memories=found)

    async def add(self, content: MemoryContent, cancellation_token: Any = None) -> None:
        self.rows.append(str(content.content))

    async def clear(self) -> None:
        self.rows.clear()

    async def close(self) -> None: ...


def test_a_memory_answers_a_replay_as_it_did(
    agent: Call, server: ProviderServer, tape: Path, paths: Call
) -> None:
    """Whatever it holds by then: the prompt is the recorded one, and nothing is added."""
    rows = ["Ann likes tea."]

    async def run() -> str:
        memory = Database(rows)
        await memory.add(MemoryContent(content="It rains.", mime_type="text/plain"))
        kinds = {one.mime_type for one in (await memory.query("Who?")).results}
        return str(await agent("helper", memory=[memory]).run(task="Go on.")) + str(kinds)

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    assert recorded.endswith("{'text/plain'}")
    assert rows == ["Ann likes tea.", "It rains."]
    rows[:] = ["Someone else's."]
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded
    assert rows == ["Someone else's."]
    assert paths()[:3] == [*["memory:Database"] * 2, "agent:helper ▸ memory:Database"]


def test_a_list_of_memories_works_as_it_is(agent: Call, twice: Call, paths: Call) -> None:
    """It is a list in the program, so it makes no exchange."""

    async def run() -> str:
        memory = ListMemory()
        await memory.add(MemoryContent(content="It rains.", mime_type=MemoryMimeType.TEXT))
        return str(await agent("helper", memory=[memory]).run(task="Go on."))

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert "It rains." in recorded
    assert len(paths()) == 1


class Nothing(BaseModel):
    pass


class Disk(CacheStore[Any], Component[Nothing]):
    """A store that outlives the run."""

    component_config_schema = Nothing

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def get(self, key: str, default: Any = None) -> Any:
        return self.entries.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.entries[key] = value


async def ask(client: Any, *questions: str, streamed: bool = False) -> list[Any]:
    answers: list[Any] = []
    for question in questions:
        asked = [UserMessage(content=question, source="user")]
        if streamed:
            answers.extend([str(chunk) async for chunk in client.create_stream(asked)])
        else:
            answers.append(await client.create(asked))
    return [str(answer) for answer in answers]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_cache_that_was_cold_is_cold_in_a_replay(
    client: Call, server: ProviderServer, tape: Path, streamed: bool
) -> None:
    """The run itself has filled it; a replay asks the tape all the same, and changes nothing."""
    entries: dict[str, Any] = {}

    def run() -> list[str]:
        cached = ChatCompletionCache(client(), Disk(entries))
        return asyncio.run(ask(cached, "One?", "One?", streamed=streamed))

    with tracefork.record(tape):
        recorded = run()
    server.stop()
    before = dict(entries)
    with tracefork.replay(tape, strict=True):
        assert run() == recorded
    assert entries == before
    with tracefork.Tape.open(tape) as opened:
        assert len(list(opened.exchanges)) == 1


def test_a_cache_that_was_warm_is_warm_in_a_replay(
    client: Call, server: ProviderServer, tape: Path
) -> None:
    """Its entry is on the tape, though the cache is empty by then."""
    entries: dict[str, Any] = {}

    def run() -> list[str]:
        return asyncio.run(ask(ChatCompletionCache(client(), Disk(entries)), "One?"))

    run()
    with tracefork.record(tape):
        recorded = run()
    entries.clear()
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert run() == recorded
    assert "cached=True" in recorded[0]


class Unreachable(Disk):
    """A store that keeps nothing, as Redis does where none runs: AutoGen only logs that."""

    def set(self, key: str, value: Any) -> None: ...


def test_a_cache_that_keeps_nothing_keeps_nothing_in_a_replay(
    client: Call, twice: Call, paths: Call
) -> None:
    """The model was asked twice."""
    store = Unreachable({})
    recorded, again = twice(
        lambda: asyncio.run(ask(ChatCompletionCache(client(), store), "One?", "One?"))
    )
    assert recorded == again
    assert len(paths()) == 2
