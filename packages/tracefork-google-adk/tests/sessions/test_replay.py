"""A replay sees the sessions that the recording saw, and leaves the service of them alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


def remember(fact: str, tool_context: Any) -> str:
    """Note a fact in the state of the session, of the user and of the run."""
    for name in ("fact", "user:fact", "temp:fact"):
        tool_context.state[name] = fact
    return "noted"


QUESTIONS = ('@call remember {"fact": "likes tea"}\n@then', "And what do I like?")


def test_a_session_replays_with_its_ids_and_times(
    agent: Callable[..., Any],
    service: Callable[[], Any],
    talk: Callable[..., str],
    twice: Callable[..., tuple[Any, Any]],
) -> None:
    """The JSON of the whole session is the same, though the database holds that session by now."""
    recorded, again = twice(lambda: talk(agent("helper", tools=[remember]), service(), *QUESTIONS))
    assert again.split(",") == recorded.split(",")
    assert '"likes tea"' in recorded


def test_a_replay_sees_neither_later_events_nor_adds_any(
    agent: Callable[..., Any],
    service: Callable[[], Any],
    talk: Callable[..., str],
    server: ProviderServer,
    tape: Path,
) -> None:
    """A session from before the recording goes on after it; the replay is as the recording was."""
    held, helper = service(), agent("helper")
    talk(helper, held, "before")
    with tracefork.record(tape):
        recorded = talk(helper, held, "while recording")
    after = talk(helper, held, "after")
    server.stop()
    with tracefork.replay(tape, strict=True):
        again = talk(helper, held, "while recording")
    assert again == recorded
    assert talk(helper, held) == after


def test_a_session_that_exists_cannot_be_created_in_a_replay_either(
    service: Callable[[], Any], tape: Path
) -> None:
    """What the recording caught, the replay catches."""
    held = service()

    async def create() -> str:
        made = await held.create_session(app_name="desk", user_id="ann")
        with pytest.raises(AlreadyExistsError):
            await held.create_session(app_name="desk", user_id="ann", session_id=made.id)
        found = await held.list_sessions(app_name="desk", user_id="ann")
        await held.delete_session(app_name="desk", user_id="ann", session_id=made.id)
        rest = await held.list_sessions(app_name="desk", user_id="ann")
        return str(found.model_dump_json() + rest.model_dump_json())

    with tracefork.record(tape):
        recorded = asyncio.run(create())
    with tracefork.replay(tape):
        assert asyncio.run(create()) == recorded


def test_a_run_in_a_thread_of_its_own_replays_three_times_in_one_session(
    agent: Callable[..., Any], twice: Callable[..., tuple[Any, Any]]
) -> None:
    """`Runner.run` makes a thread and an event loop at each call; the clients belong to a loop."""

    def act() -> list[str]:
        held = InMemorySessionService()
        runner = Runner(app_name="desk", agent=agent("helper"), session_service=held)
        session = held.create_session_sync(app_name="desk", user_id="ann")
        asked = types.Content(role="user", parts=[types.Part(text="Go on.")])
        return [
            event.model_dump_json()
            for _ in range(3)
            for event in runner.run(user_id="ann", session_id=session.id, new_message=asked)
        ]

    recorded, again = twice(act)
    assert again == recorded
    assert len(recorded) == 3
