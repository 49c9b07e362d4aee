"""Memories in databases: a replay opens none, and neither reads nor changes what they hold."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemory,
    CustomEmbeddingFunctionConfig,
    PersistentChromaDBVectorMemoryConfig,
)
from autogen_ext.memory.mem0 import Mem0Memory
from chromadb import EmbeddingFunction

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer, Reply

Call = Callable[..., Any]


class Vectors(EmbeddingFunction[Any]):
    """Vectors of a provider, asked over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, input: Any) -> Any:  # noqa: A002 - the name that Chroma checks
        asked = {"model": "text-embedding-3-small", "input": list(input), "dimensions": 8}
        found = httpx.post(f"{self._url}/v1/embeddings", json=asked).json()
        return [item["embedding"] for item in found["data"]]

    @staticmethod
    def name() -> str:
        """Return what the database writes down of it."""
        return "vectors-of-the-test"

    def get_config(self) -> dict[str, Any]:
        """Return the same."""
        return {"url": self._url}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Vectors:
        """Make it again."""
        return Vectors(config["url"])


@pytest.fixture
def chroma(tmp_path: Path, url: str) -> Callable[[], ChromaDBVectorMemory]:
    """Open a memory on disk."""

    def opened() -> ChromaDBVectorMemory:
        vectors = CustomEmbeddingFunctionConfig(function=Vectors, params={"url": url})
        return ChromaDBVectorMemory(
            PersistentChromaDBVectorMemoryConfig(
                persistence_path=str(tmp_path / "chroma"),
                k=2,
                allow_reset=True,
                embedding_function_config=vectors,
            )
        )

    return opened


def text(words: str) -> MemoryContent:
    return MemoryContent(content=words, mime_type=MemoryMimeType.TEXT, metadata={"n": 1})


def held(tmp_path: Path) -> int:
    """Return how many texts the database holds."""
    with sqlite3.connect(tmp_path / "chroma" / "chroma.sqlite3") as database:
        return int(database.execute("select count(*) from embeddings").fetchone()[0])


def test_a_replay_opens_no_database(
    agent: Call, chroma: Call, server: ProviderServer, tape: Path, paths: Call, tmp_path: Path
) -> None:
    """What it would find there by then is no part of the run, nor are vectors."""

    async def converse() -> str:
        memory = chroma()
        for words in ("Ann likes tea.", "It rains.", "Ben is late."):
            await memory.add(text(words))
        said = str(await agent("helper", memory=[memory]).run(task="Who likes tea?"))
        await memory.close()
        return said

    with tracefork.record(tape):
        recorded = asyncio.run(converse())
    assert held(tmp_path) == 3
    server.stop()
    (tmp_path / "chroma").rename(tmp_path / "elsewhere")
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(converse()) == recorded
    assert not (tmp_path / "chroma").exists()
    memory = "memory:ChromaDBVectorMemory"
    assert paths() == [*[memory] * 3, f"agent:helper ▸ {memory}", "agent:helper ▸ model:gpt-4o"]


def test_a_fork_adds_nothing_unless_writes_are_allowed(
    agent: Call, chroma: Call, tape: Path, tmp_path: Path
) -> None:
    """It asks the database again, which is a read."""

    async def converse(words: str = "It rains.") -> str:
        memory = chroma()
        await memory.add(text(words))
        return str(await agent("helper", memory=[memory]).run(task="Does it?"))

    with tracefork.record(tape):
        asyncio.run(converse())
    assert held(tmp_path) == 1
    with tracefork.fork(tape, "memory:ChromaDBVectorMemory:2"):
        assert "It rains." in asyncio.run(converse())
    with pytest.raises(tracefork.TraceforkError), tracefork.fork(tape, 0):
        asyncio.run(converse())
    assert held(tmp_path) == 1


@pytest.mark.parametrize("how", ["clear", "reset"])
def test_a_replay_empties_no_database(chroma: Call, tape: Path, tmp_path: Path, how: str) -> None:
    """It would lose what was added since."""

    async def empty() -> None:
        await getattr(chroma(), how)()

    async def add() -> None:
        await chroma().add(text("Since then."))

    asyncio.run(add())
    with tracefork.record(tape):
        asyncio.run(empty())
    assert held(tmp_path) == 0
    asyncio.run(add())
    with tracefork.replay(tape, strict=True):
        asyncio.run(empty())
    assert held(tmp_path) == 1


def facts(_: object) -> Reply:
    """Answer what Mem0 asks a model: which facts a text holds, and what becomes of each."""
    kept = {"id": "0", "text": "Ann likes tea.", "event": "ADD"}
    return Reply(json.dumps({"facts": ["Ann likes tea."], "memory": [kept]}))


def test_a_replay_neither_asks_nor_fills_mem0(
    tape: Path, paths: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks models of its own while it adds, and its results have times."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    async def converse(url: str) -> str:
        at = {"openai_base_url": f"{url}/v1"}
        store = {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 8}
        config = {
            "llm": {"provider": "openai", "config": {"model": "gpt-4o", **at}},
            "embedder": {"provider": "openai", "config": {"embedding_dims": 8, **at}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(tmp_path / "history.db"),
        }
        memory = Mem0Memory(user_id="ann", is_cloud=False, config=config)
        await memory.add(text("Ann likes tea."))
        return str(await memory.query("Who likes tea?"))

    with ProviderServer(facts) as server, tracefork.record(tape):
        url = server.url
        recorded = asyncio.run(converse(url))
    assert "Ann likes tea." in recorded
    shutil.rmtree(tmp_path / "qdrant")
    (tmp_path / "history.db").unlink()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(converse(url)) == recorded
    assert paths() == ["memory:Mem0Memory"] * 2
