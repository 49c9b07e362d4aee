"""A store of the user's own outlives the run, and no replay or fork touches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import tracefork_core as tracefork
from tracefork_langgraph import stores
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from . import memories
from .conftest import Run
from .memories import ASYNC, SYNC

KINDS = [*SYNC, *ASYNC]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that counts its answers."""
    numbers = iter(range(1000))

    def script(_: ModelRequest) -> Reply:
        return Reply(f"answer {next(numbers)}")

    with ProviderServer(script) as server:
        yield server


@pytest.fixture
def recorded(record: Callable[..., Run], place_of: Callable[[str], str]) -> Callable[[str], Run]:
    """Record two topics after one that the store knows, with a kind of store."""

    def recorded(kind: str) -> Run:
        memories.MEMORY._data.clear()
        return record(memories, kind, place_of(kind), "tea", ["coffee", "milk"])

    return recorded


@pytest.mark.many_processes
def test_ten_replays_in_other_processes_leave_each_store_as_it_was(
    recorded: Callable[[str], Run], replayed_elsewhere: Callable[[list[Run]], None]
) -> None:
    """They ask about what the recording found, down to the time at which it was put."""
    replayed_elsewhere([recorded(kind) for kind in KINDS])


@pytest.mark.parametrize("store", KINDS)
def test_fork_finds_what_the_recording_read_and_what_it_has_put_itself(
    recorded: Callable[[str], Run], store: str, server: ProviderServer
) -> None:
    """But not what the recording put after the fork point."""
    run = recorded(store)
    before = run.content
    with tracefork.fork(run.tape, 0) as branch:
        forked = run()
    assert (branch.live, run.content) == (2, before)
    asked = str(server.requests[-1].json()["messages"][-1]["content"])
    assert "tea=answer 0 at" in asked  # From before the recording.
    assert "coffee=answer 3 at" in asked  # The recording's was 1.
    assert "last=answer 3, not answer 0, not None at" in asked
    assert "answer 1" not in asked
    with tracefork.replay(branch.path):
        assert run() == forked


@pytest.mark.parametrize("stands_in", [True, False])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_only_without_stand_ins_a_replay_diverges_and_writes_into_the_store(
    recorded: Callable[[str], Run], store: str, stands_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: this is what an adapter without them does."""
    run = recorded(store)
    if not stands_in:
        monkeypatch.setattr(stores.MEMORY, "apply", lambda _: lambda: None)
    before = run.content

    def replay() -> None:
        with tracefork.replay(run.tape), SYNC[store](run.arguments[2]) as opened:
            opened.put(memories.FACTS, "water", {"said": "nothing"})
            if not stands_in:
                run()

    why = "never asked" if stands_in else "known: coffee="
    with pytest.raises(tracefork.DivergenceError, match=why):
        replay()
    assert (run.content == before) is stands_in
