"""Memories and knowledge: no replay opens a storage, and a fork has one of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from crewai.knowledge.storage.knowledge_storage import KnowledgeStorage
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.unified_memory import Memory

import tracefork_core as tracefork

KNOWN: dict[str, Any] = {"scope": "/a", "categories": ["x"], "importance": 0.5, "metadata": {}}

pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:chromadb\..*")


def embed(texts: list[str]) -> list[list[float]]:
    """Return a vector that depends on the letters."""
    return [[text.count(letter) + 0.5 for letter in "abcdefgh"] for text in texts]


def memory(llm: Any, path: Path) -> Memory:
    """Return a memory in a folder."""
    return Memory(llm=llm(), embedder=embed, storage=LanceDBStorage(path))


def found(kept: Memory, query: str = "cab") -> set[str]:
    """Return the contents of what a memory finds."""
    return {match.record.content for match in kept.recall(query, depth="shallow")}


def test_a_fork_remembers_and_finds_in_a_storage_of_its_own(
    llm: Any, home: Path, stored: Any, tape: Path
) -> None:
    """What earlier runs stored and the recording found, and what the fork stored itself."""
    path = home / "memory"
    memory(llm, path).remember("A cab came.", **KNOWN)

    def run(more: str) -> list[set[str]]:
        kept = memory(llm, path)
        before = found(kept)
        kept.remember(more, **KNOWN)
        return [before, found(memory(llm, path))]

    with tracefork.record(tape):
        assert run("A bed.") == [{"A cab came."}, {"A cab came.", "A bed."}]
    before = stored()
    with tracefork.fork(tape, at=0) as branch:
        assert run("A hedge.") == [{"A cab came."}, {"A cab came.", "A hedge."}]
    assert stored() == before
    with tracefork.fork(branch.path, at=0):  # The branch holds what the fork found, too.
        assert run("A badge.") == [{"A cab came."}, {"A cab came.", "A badge."}]
    assert stored() == before


def test_a_memory_from_before_the_session_stays_as_it_is(
    llm: Any, home: Path, stored: Any, tape: Path
) -> None:
    """Its storage is open, and is used again afterwards."""
    kept = memory(llm, home / "memory")
    kept.remember("A cab came.", **KNOWN)
    with tracefork.record(tape):
        assert found(kept) == {"A cab came."}
    before = stored()
    with tracefork.fork(tape, at=0):
        assert found(kept) == {"A cab came."}
        kept.reset()
        assert found(kept) == set()
    assert stored() == before
    assert found(kept) == {"A cab came."}


@pytest.mark.parametrize("begins_late", [False, True])
def test_a_save_that_outlives_its_fork_stays_in_its_storage(
    llm: Any, home: Path, tape: Path, begins_late: bool
) -> None:
    """It runs in the background, and no session is open by the time that it stores.

    LanceDB rewrites its files in the background too, so this looks at what they hold.
    """
    kept = memory(llm, home / "memory")
    kept.remember("A cab came.", **KNOWN)
    with tracefork.record(tape):
        found(kept)
    over = threading.Event()

    def wait_and_embed(texts: list[str]) -> list[list[float]]:
        over.wait(10)
        return embed(texts)

    with tracefork.fork(tape, at=1):
        found(kept)
        if begins_late:
            kept._save_pool.submit(over.wait, 10)  # The only thread of this pool is busy.
        else:
            kept._embedder_instance = wait_and_embed
        kept.remember_many(["A hedge."], **KNOWN)
    over.set()
    kept.drain_writes()
    assert found(kept, "hedge") == {"A cab came."}
    kept.remember("A hedge.", **KNOWN)
    assert found(kept, "hedge") == {"A cab came.", "A hedge."}
    assert "_storage" not in vars(Memory)  # Nothing is replaced any more.


def test_a_memory_that_a_replay_made_opens_its_storage_afterwards(
    llm: Any, home: Path, stored: Any, tape: Path
) -> None:
    """Within the replay the folder is not even made."""

    def run() -> Memory:
        kept = Memory(llm=llm(), embedder=embed, storage=str(home / "memory"))
        found(kept)
        return kept

    with tracefork.record(tape):
        run()
    (home / "memory").rename(home / "away")
    before = stored()
    with tracefork.replay(tape):
        kept = run()
    assert stored() == before
    kept.remember("A cab came.", **KNOWN)
    assert (home / "memory").exists()


def test_stored_passages_are_found_as_recorded(
    home: Path, stored: Any, url: str, tape: Path
) -> None:
    """Where a program asks a storage itself, too. A fork finds what earlier runs stored."""
    config = {"api_key": "none", "api_base": f"{url}/v1", "model_name": "m"}

    def storage() -> Any:
        embedder: Any = {"provider": "openai", "config": config}
        return KnowledgeStorage(embedder=embedder, collection_name="shop")

    def run(more: str | None = None) -> list[str]:
        known = storage()
        passages = known.search(["returns"], score_threshold=0)
        if more is not None:
            known.save([more])
            passages = known.search(["else"], score_threshold=0)
        return sorted(passage["content"] for passage in passages)

    storage().save(["Within 30 days."])
    with tracefork.record(tape):
        assert run() == ["Within 30 days."]
    storage().save(["Within 14 days."])
    before = stored()
    with tracefork.replay(tape):
        assert run() == ["Within 30 days."]
    with tracefork.fork(tape, at=0):
        assert run("At no time.") == ["At no time.", "Within 30 days."]
    with tracefork.replay(tape):
        storage().reset()
    assert stored() == before
