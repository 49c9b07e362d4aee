"""Histories that outlive a run are read from the tape in a replay, and not written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import agent_framework
import pytest
from agent_framework import AgentSession, HistoryProvider, Message

import tracefork_core as tracefork

Call = Callable[..., Any]


class Shelf(HistoryProvider):
    """A history of the program's own, in a list that stands for a database."""

    def __init__(self) -> None:
        super().__init__("shelf")
        self.rows: list[Message] = []

    async def get_messages(self, session_id: str | None, **options: Any) -> list[Message]:
        """Read the messages."""
        return list(self.rows)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **options: Any
    ) -> None:
        """Append messages."""
        self.rows.extend(messages)


def test_a_replay_reads_the_recorded_history_and_saves_nothing(
    agent: Call, ask: Call, twice: Call
) -> None:
    """It has changed since, and the prompt of the replay has the recorded one all the same."""
    shelf = Shelf()
    shelf.rows.append(Message("user", ["My name is Ann."]))

    def run() -> str:
        session = AgentSession(session_id="s")
        helper = agent("helper", "@say Hi.", context_providers=[shelf])
        said = [ask(helper, session=session).text for _ in range(1)]
        return str(said)

    def after_it() -> str:
        said = run()
        lengths.append(len(shelf.rows))
        shelf.rows.append(Message("user", ["My name is Bob."]))
        return said

    lengths: list[int] = []
    recorded, again = twice(after_it)
    assert recorded == again
    assert lengths == [3, 4]


def test_a_fork_reads_what_it_saved_itself(agent: Call, ask: Call, tape: Path, server: Any) -> None:
    """Behind the fork point the history is the recorded one and the fork's own."""
    shelf = Shelf()

    def run() -> list[str]:
        session = AgentSession(session_id="s")
        return [
            ask(agent("helper", f"@say {n}.", context_providers=[shelf]), session=session).text
            for n in range(2)
        ]

    with tracefork.record(tape):
        run()
    rows = len(shelf.rows)
    with tracefork.fork(tape, 0, tracefork.Replace(text="Something else.")):
        run()
    assert len(shelf.rows) == rows
    assert "Something else." in str(server.requests[-1].body)


def test_a_history_in_files_is_left_alone(
    agent: Call, ask: Call, twice: Call, tmp_path: Path
) -> None:
    """The framework's own provider, where it has one."""
    kind = getattr(agent_framework, "FileHistoryProvider", None)
    if kind is None:
        pytest.skip("Agent Framework 1.0 has no history in files")
    folder = tmp_path / "history"

    def run() -> Any:
        session = AgentSession(session_id="s")
        helper = agent("helper", "@say Hi.", context_providers=[kind(folder)])
        said = [ask(helper, session=session).text for _ in range(1)]
        return said, [path.read_text() for path in folder.iterdir()]

    recorded, again = twice(run)
    assert recorded == again
    assert "Hi." in recorded[1][0]


class InState(HistoryProvider):
    """A history of the program's own, in the state of the session."""

    async def get_messages(
        self, session_id: str | None, *, state: Any = None, **options: Any
    ) -> list[Message]:
        """Read the messages."""
        return list(state.get("kept", ()))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: Any = None,
        **options: Any,
    ) -> None:
        """Append messages."""
        state.setdefault("kept", []).extend(messages)


def test_a_history_of_your_own_in_the_state_is_read_but_not_kept(agent: Call, twice: Call) -> None:
    """A later turn has the recorded messages all the same."""

    async def run() -> Any:
        session = AgentSession(session_id="s")
        helper = agent("helper", "@say Hi.", context_providers=[InState("kept")])
        said = [(await helper.run(question, session=session)).text for question in "ab"]
        kept.append(len(session.state.get("kept", {}).get("kept", ())))
        return said

    kept: list[int] = []
    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert kept == [4, 0]
