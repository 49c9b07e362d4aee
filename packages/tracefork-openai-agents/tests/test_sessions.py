"""Replay and fork runs that remember conversations of earlier runs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Runner, SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of the database."""
    return tmp_path / "conversations.db"


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """Note a session, to close it at the end: the garbage collector would complain."""
    noted: list[Any] = []

    def note(held: Any) -> Any:
        noted.append(held)
        return held

    yield note
    for held in noted:
        inner = getattr(held, "underlying_session", held)
        if (engine := getattr(inner, "engine", None)) is not None:
            asyncio.run(engine.dispose())
        if (closed := getattr(inner, "close", lambda: None)()) is not None:
            asyncio.run(closed)


async def _answer(agent: Any, text: str, held: Any) -> str:
    return str((await Runner.run(agent, text, session=held)).final_output)


class _Own:
    """A session of the program's own, which derives from none of the SDK."""

    session_settings = None

    def __init__(self, items: list[Any]) -> None:
        self.session_id = "own"
        self._items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return list(self._items if limit is None else self._items[-limit:])

    async def add_items(self, items: list[Any]) -> None:
        self._items += items

    async def pop_item(self) -> Any:
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        self._items.clear()


def _sqlite(file: Path) -> Callable[[], Any]:
    return lambda: SQLiteSession("42", file)


def _advanced(file: Path) -> Callable[[], Any]:
    return lambda: AdvancedSQLiteSession(session_id="42", db_path=file, create_tables=True)


def _encrypted(file: Path) -> Callable[[], Any]:
    return lambda: EncryptedSession("42", SQLiteSession("42", file), encryption_key="secret-key")


def _asynchronous(file: Path) -> Callable[[], Any]:
    from agents.extensions.memory import AsyncSQLiteSession

    return lambda: AsyncSQLiteSession("42", file)


def _alchemy(file: Path) -> Callable[[], Any]:
    from agents.extensions.memory import SQLAlchemySession

    url = f"sqlite+aiosqlite:///{file}"
    return lambda: SQLAlchemySession.from_url("42", url=url, create_tables=True)


def _own(_: Path) -> Callable[[], Any]:
    items: list[Any] = []
    return lambda: _Own(items)


_KINDS = [_sqlite, _advanced, _encrypted, _asynchronous, _alchemy, _own]


@pytest.mark.parametrize("kind", _KINDS)
def test_a_run_replays_with_the_conversation_that_it_began_with(
    agent: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
    file: Path,
    opened: Callable[[Any], Any],
    kind: Callable[[Path], Callable[[], Any]],
) -> None:
    """The recording went on with that conversation, which a replay must neither see nor repeat."""
    make = kind(file)

    async def run() -> list[str]:
        helper = agent("Helper")
        held = opened(make())
        return [await _answer(helper, text, held) for text in ("one", "two")]

    asyncio.run(run())
    with tracefork.record(tape):
        recorded = asyncio.run(run())
    assert len(server.requests[-1].json()["input"]) == 7
    server.stop()
    before = _hash(file)
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded
    assert _hash(file) == before


def test_a_replay_needs_no_file(
    agent: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
    file: Path,
    opened: Callable[[Any], Any],
) -> None:
    """It makes none either: on another machine there may be no such folder."""

    async def run() -> str:
        helper = agent("Helper")
        held = opened(SQLiteSession("42", file))
        assert held.db_path == file
        return await _answer(helper, "one", held)

    with tracefork.record(tape):
        first = asyncio.run(run())
    server.stop()
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == first
    assert not file.exists()


def test_a_fork_remembers_what_it_said_itself(
    agent: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
    file: Path,
    opened: Callable[[Any], Any],
) -> None:
    """The second run of the fork reads the answer that the fork gave to the first."""

    async def run() -> None:
        helper = agent("Helper")
        held = opened(SQLiteSession("42", file))
        await _answer(helper, "one", held)
        await _answer(helper, "two", held)

    asyncio.run(run())
    with tracefork.record(tape):
        asyncio.run(run())
    before = _hash(file)
    with tracefork.fork(tape, at=0, replace="The fork said so."):
        asyncio.run(run())
    told = server.requests[-1].json()["input"]
    assert [it["content"] for it in told if it.get("role") == "user"] == ["one", "two"] * 2
    assert told[-2]["content"][0]["text"] == "The fork said so."
    assert _hash(file) == before


def test_items_that_a_run_takes_back_replay(
    agent: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
    file: Path,
    opened: Callable[[Any], Any],
) -> None:
    """A person corrects the last question: both turns are taken back first."""

    async def run() -> tuple[object, ...]:
        helper = agent("Helper")

        held = opened(SQLiteSession("42", file))
        await _answer(helper, "one", held)
        await held.pop_item()
        taken = await held.pop_item()
        answer = await _answer(helper, "two", held)
        last = await held.get_items(limit=1)
        await held.clear_session()
        return taken, answer, last, await held.get_items()

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    assert recorded[-1] == []
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded


def test_branches_of_a_conversation_replay(
    agent: Callable[..., Any],
    server: ProviderServer,
    tape: Path,
    file: Path,
    opened: Callable[[Any], Any],
) -> None:
    """They are in tables of their own, and what is asked about them is as recorded."""

    async def run() -> tuple[object, ...]:
        helper = agent("Helper")
        made = AdvancedSQLiteSession(session_id="42", db_path=file, create_tables=True)
        held = opened(made)
        for text in ("one", "two"):
            result = await Runner.run(helper, text, session=held)
            await held.store_run_usage(result)
        await held.create_branch_from_turn(2, branch_name="other")
        other = await _answer(helper, "three", held)
        names = [it["branch_id"] for it in await held.list_branches()]
        return other, names, await held.get_session_usage()

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded


def _hash(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
