"""Memory and knowledge are called once: a replay stores nothing and returns what was found."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from crewai.knowledge.knowledge import Knowledge
from crewai.knowledge.source.string_knowledge_source import StringKnowledgeSource
from crewai.knowledge.storage.base_knowledge_storage import BaseKnowledgeStorage
from crewai.memory.types import MemoryRecord, ScopeInfo
from crewai.memory.unified_memory import Memory
from pydantic import Field

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply


class Drawer:
    """Stores records in their order of arrival: importing LanceDB takes seconds."""

    def __init__(self) -> None:
        self.records: dict[str, MemoryRecord] = {}

    def save(self, records: list[MemoryRecord]) -> None:
        self.records.update({record.id: record for record in records})

    def update(self, record: MemoryRecord) -> None:
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        return self.records.get(record_id)

    def search(self, *_: Any, limit: int = 10, **__: Any) -> list[tuple[MemoryRecord, float]]:
        return [(record, 0.5) for record in list(self.records.values())[:limit]]

    def list_records(self, **_: Any) -> list[MemoryRecord]:
        return list(self.records.values())

    def list_scopes(self, parent: str = "/") -> list[str]:
        return ["/a"]

    def list_categories(self, **_: Any) -> dict[str, int]:
        return {"x": 1}

    def get_scope_info(self, scope: str) -> ScopeInfo:
        return ScopeInfo(path=scope, record_count=len(self.records))

    def delete(self, record_ids: list[str] | None = None, **_: Any) -> int:
        return len([self.records.pop(name) for name in record_ids or ()])


@pytest.fixture
def memory(llm: Any, ran: Any) -> Any:
    """Make an empty memory whose embeddings are counted."""

    def embed(texts: list[str]) -> list[list[float]]:
        ran.append("embed")
        return [[float(len(text)), 1.0, 0.5] for text in texts]

    return lambda model=None: Memory(llm=model or llm(), embedder=embed, storage=Drawer())


def test_a_crew_with_memory_replays(
    crew: Any, twice: Any, memory: Any, ran: Any, exchanges: Any, prompts: Any, paths: Any
) -> None:
    """Each task recalls and saves. The replay does neither for real and sends equal requests."""

    def run() -> Any:
        asks = [
            '@call save_to_memory {"contents": ["It is lost."]}',
            '@call save_to_memory {"contents": ["One.", "Two."]}',
            '@call search_memory {"queries": ["lost?", "found?"]}',
        ]
        prompts = {"research": "@say Facts.", "write": "\n@then\n".join([*asks, "@say Prose."])}
        return crew(**prompts, options_={"memory": memory()}).kickoff()

    recorded, replayed = twice(run)
    assert replayed.raw == recorded.raw
    embedded = ran.now()
    assert embedded
    names = [name for name, _ in exchanges()]
    by_tools = ["remember", "remember_many", "recall", "recall"]
    saved = ["extract_memories", "remember_many"]
    each = ["recall", *saved, "recall", *by_tools, *saved]
    assert names == [f"memory.{name}" for name in each]
    assert "Found memories:" in prompts()
    assert "Relevant memories:" in prompts()
    assert {path[1] for path in paths()} == {"research", "write"}


def test_a_replay_counts_the_tokens_that_a_memory_used(
    crew: Any, llm: Any, memory: Any, tape: Path, exchanges: Any
) -> None:
    """A memory calls models inside its exchange. The replay does not, but counts the same."""

    def answer(request: ModelRequest) -> Reply:
        is_text = "response_format" not in request.payload
        return Reply("Facts." if is_text else '{"memories": ["A fact."], "importance": 0.5}')

    with ProviderServer(answer) as provider:

        def run() -> Any:
            model = llm(base_url=f"{provider.url}/v1")
            made = crew(write="Write.", llm_=model, options_={"memory": memory(model)})
            return made.kickoff().token_usage

        with tracefork.record(tape):
            recorded = run()
        with tracefork.replay(tape):
            assert run() == recorded
    assert [name for name, _ in exchanges()][1:] == [
        "memory.extract_memories",
        "memory.remember_many",
    ]
    assert recorded.successful_requests == 2  # One of the agent, one of the memory.


def test_tokens_used_in_the_background_count_with_the_next_answer(
    llm: Any, memory: Any, tape: Path
) -> None:
    """The background has no fixed time, so recordings and replays count at the same exchange."""

    def answer(_: ModelRequest) -> Reply:
        return Reply('{"suggested_scope": "/a", "categories": ["x"], "importance": 0.5}')

    with ProviderServer(answer) as provider:

        def run() -> list[int]:
            model = llm(base_url=f"{provider.url}/v1")
            kept = memory(model)
            kept.remember_many(["One thing."])
            kept.drain_writes()
            used = [model.get_token_usage_summary().successful_requests]
            kept.list_records()
            return [*used, model.get_token_usage_summary().successful_requests]

        assert run() == [1, 1]
        with tracefork.record(tape):
            assert run() == [0, 1]
        with tracefork.replay(tape):
            assert run() == [0, 1]


def test_another_question_diverges(tape: Path, memory: Any) -> None:
    """The control: queries to a memory are compared."""
    with tracefork.record(tape):
        memory().recall("facts", depth="shallow")
    with pytest.raises(tracefork.DivergenceError, match="/query"), tracefork.replay(tape):
        memory().recall("rumours", depth="shallow")


def test_a_replay_returns_equal_records(tape: Path, memory: Any, ran: Any) -> None:
    """With their ids, times and scores, but without vectors."""

    def run() -> list[Any]:
        kept = memory()
        known = {"scope": "/a", "categories": ["x"], "importance": 0.25, "metadata": {"n": 1}}
        record = kept.remember("The turntable is lost.", **known)
        found = kept.scope("/a").recall("turntable", depth="shallow")
        told = [record, found, kept.list_records(), kept.info(), kept.tree()]
        kept.update(record.id, importance=0.5)
        assert kept.forget(record_ids=[record.id]) == 1
        kept.remember_many(["One more."], **known)
        kept.drain_writes()
        return told

    with tracefork.record(tape):
        recorded = run()
    assert ran.now()
    with tracefork.replay(tape):
        assert run() == recorded
    assert ran.now() == []
    record, (match,), (listed,), info, _ = recorded
    assert record.id == match.record.id == listed.id
    assert isinstance(record.created_at, datetime)
    assert (0 < match.score < 1, match.record.embedding, info.record_count) == (True, None, 1)


class Shelf(BaseKnowledgeStorage):
    """Finds every text that was stored. Chroma takes seconds to start."""

    texts: list[str] = Field(default_factory=list)

    def search(self, query: Any, limit: int = 5, *_: Any, **__: Any) -> list[Any]:
        return [{"id": "1", "content": text, "metadata": {}, "score": 0.5} for text in self.texts]

    async def asearch(self, query: Any, limit: int = 5, *_: Any, **__: Any) -> list[Any]:
        return self.search(query)

    def save(self, documents: list[str]) -> None:
        self.texts.extend(documents)

    async def asave(self, documents: list[str]) -> None:
        self.save(documents)

    def reset(self) -> None:
        self.texts.clear()

    async def areset(self) -> None:
        self.reset()


async def ask(text: str) -> tuple[list[Any], list[str]]:
    """Return the answers of knowledge about a text, and what was stored for it."""
    shelf = Shelf()
    known = Knowledge("shop", [StringKnowledgeSource(content=text)], storage=shelf)
    known.add_sources()
    await known.aadd_sources()
    return [known.query(["returns"]), await known.aquery(["returns"])], shelf.texts


async def test_knowledge_is_asked_once(tape: Path) -> None:
    """The replay adds no source, and returns the recorded passages."""
    with tracefork.record(tape):
        recorded, stored = await ask("Within 30 days.")
    assert recorded[0][0]["content"] == "Within 30 days."
    assert stored
    with tracefork.replay(tape):
        assert await ask("Within 30 days.") == (recorded, [])


async def test_other_knowledge_diverges(tape: Path) -> None:
    """The control: the content of a source is compared."""
    with tracefork.record(tape):
        await ask("Within 30 days.")
    with pytest.raises(tracefork.DivergenceError, match="content"), tracefork.replay(tape):
        await ask("Within 14 days.")


def test_a_crew_with_knowledge_replays(
    crew: Any, twice: Any, server: Any, exchanges: Any, prompts: Any
) -> None:
    """The passages are in its prompts in both runs, and the replay stores nothing."""
    shelves = []

    def run() -> Any:
        shelves.append(Shelf())
        source = StringKnowledgeSource(content="@say Within 30 days.")
        known = Knowledge("shop", [source], storage=shelves[-1])
        known.add_sources()
        return crew(help="When?", options_={"knowledge": known}).kickoff()

    recorded, replayed = twice(run)
    assert "Within 30 days." in recorded.raw
    assert replayed.raw == recorded.raw
    assert "Within 30 days." in prompts()
    assert [len(shelf.texts) for shelf in shelves] == [1, 0]
    assert [name for name, _ in exchanges()] == ["knowledge.add_sources", "knowledge.query"]


def test_a_fork_finds_what_was_stored_before_it(tape: Path, memory: Any, ran: Any) -> None:
    """They run again at the first live call, in storages of the fork's own."""

    def run(question: str) -> tuple[list[str], list[str]]:
        kept, shelf = memory(), Shelf()
        known = Knowledge("shop", [StringKnowledgeSource(content="30 days.")], storage=shelf)
        known.add_sources()
        kept.remember("It is lost.", scope="/a", categories=["x"], importance=0.5, metadata={})
        found = kept.recall(question, depth="shallow")
        answers = [passage["content"] for passage in known.query([question])]
        stored.append([*shelf.texts, *(it.content for it in kept.storage.records.values())])
        return [match.record.content for match in found], answers

    stored: list[list[str]] = []
    with tracefork.record(tape):
        recorded = run("lost?")
    assert recorded == (["It is lost."], ["30 days."])
    ran.now()
    with tracefork.fork(tape, at=2):
        assert run("lost?") == recorded
    assert ran.now()
    with tracefork.replay(tape):
        assert run("lost?") == recorded
    assert ran.now() == []
    assert stored == [["30 days.", "It is lost."], [], []]
