"""A fork of a session is a new one with the first events; the original stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool

import tracefork_core as tracefork
from tracefork_google_adk import fork_session
from tracefork_testkit import ProviderServer

from .conftest import atalk


def remember(fact: str, tool_context: Any) -> str:
    """Note a fact in the state of the session and of the user."""
    tool_context.state["fact"] = tool_context.state["user:fact"] = fact
    return "noted"


@pytest.fixture
def recorded(
    agent: Callable[..., Any], service: Callable[[], Any], talk: Callable[..., str], tape: Path
) -> tuple[Any, Any, str]:
    """Record a session of two questions; return the agent, the service and the session."""
    helper, held = agent("helper", tools=[remember]), service()
    with tracefork.record(tape):
        talk(helper, held, '@call remember {"fact": "tea"}\n@then\n@say Noted.', "@say Tea.")
    return helper, held, talk(helper, held)


def texts(session: Any) -> list[str]:
    """Return what the events of a session say."""
    parts = [part for event in session.events for part in event.content.parts]
    return [part.text for part in parts if part.text]


def test_a_fork_holds_the_first_events_and_leaves_the_original(
    recorded: tuple[Any, Any, str], tape: Path, talk: Callable[..., str]
) -> None:
    """It has the state of that time, and the user's values that all sessions share."""
    helper, held, before = recorded
    fork = asyncio.run(fork_session(tape, held, at=3))
    assert fork.id != "s1"
    found = asyncio.run(held.get_session(app_name="desk", user_id="ann", session_id=fork.id))
    assert found.model_dump() == fork.model_dump()
    original = asyncio.run(held.get_session(app_name="desk", user_id="ann", session_id="s1"))
    content = {"content", "id", "author", "timestamp", "invocation_id"}
    assert [event.model_dump(include=content) for event in fork.events] == [
        event.model_dump(include=content) for event in original.events[:3]
    ]
    expected = {"open": True, "fact": "tea", "user:fact": "tea", "user:tier": "gold"}
    assert fork.state == expected
    assert talk(helper, held) == before


def test_the_next_prompt_begins_with_the_events_of_the_fork(
    recorded: tuple[Any, Any, str], tape: Path, server: ProviderServer
) -> None:
    """The model is asked as if the rest had not happened."""
    helper, held, _ = recorded
    fork = asyncio.run(fork_session(tape, held, at=4, new_session_id="second try"))
    asyncio.run(atalk(helper, held, "@say Coffee.", session_id=fork.id))
    asked = server.requests[-1].body.decode()
    assert "@say Coffee." in asked
    assert "Noted." in asked
    assert "@say Tea." not in asked


def test_a_fork_in_another_service_brings_the_values_of_the_user_along(
    recorded: tuple[Any, Any, str], tape: Path
) -> None:
    """That service has none of them; without `at` a fork holds all events."""
    other = InMemorySessionService()
    fork = asyncio.run(fork_session(tape, other, app_name="lab", user_id="bob"))
    assert (fork.app_name, fork.user_id, len(fork.events)) == ("lab", "bob", 6)
    assert fork.state == {"open": True, "fact": "tea", "user:fact": "tea"}


def test_a_fork_keeps_what_the_service_has_for_the_user(
    agent: Callable[..., Any], talk: Callable[..., str], tape: Path
) -> None:
    """Other sessions of the user would change, too."""
    held, helper = InMemorySessionService(), agent("helper", tools=[remember])
    with tracefork.record(tape):
        talk(helper, held, '@call remember {"fact": "tea"}\n@then')
    talk(helper, held, '@call remember {"fact": "coffee"}\n@then')
    fork = asyncio.run(fork_session(tape, held, at=3))
    assert (fork.state["fact"], fork.state["user:fact"]) == ("tea", "coffee")


def test_events_from_before_the_recording_count(
    agent: Callable[..., Any], service: Callable[[], Any], talk: Callable[..., str], tape: Path
) -> None:
    """`at` is an index into the events of the session, as a user sees them."""
    held, helper = service(), agent("helper")
    talk(helper, held, "@say one")
    with tracefork.record(tape):
        talk(helper, held, "@say two")
    fork = asyncio.run(fork_session(tape, held, at=3))
    asked, said, asked_then = texts(fork)
    assert (asked, said.split()[0], asked_then) == ("@say one", "one", "@say two")
    assert fork.state["open"] is True


def test_the_session_of_an_agent_that_is_a_tool_is_forked_by_its_id(
    agent: Callable[..., Any], talk: Callable[..., str], tape: Path
) -> None:
    """By default the fork is of the session that the run began with."""
    inner: LlmAgent = agent("expert", "@say I am the expert.")
    helper = agent("helper", tools=[AgentTool(inner)])
    held = InMemorySessionService()
    with tracefork.record(tape):
        talk(helper, held, '@call expert {"request": "who?"}\n@then\n@say Done.')
    assert texts(asyncio.run(fork_session(tape, held)))[-1].startswith("Done.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"at": 99},
            r"at must be between 0 and 2 \(got 99\): session s1 of this tape has 2 events",
        ),
        ({"at": -1}, "between 0 and 2"),
        ({"session_id": "s9"}, "has no session s9. Pass session_id= with one of s1, s2"),
        ({}, "has several sessions. Pass session_id= with one of s1, s2"),
    ],
)
def test_what_the_tape_does_not_have_is_refused(
    agent: Callable[..., Any],
    talk: Callable[..., str],
    tape: Path,
    options: dict[str, Any],
    message: str,
) -> None:
    """The message names the sessions and their length, and no session is created."""
    held = InMemorySessionService()
    with tracefork.record(tape):
        for name in ("s1", "s2"):
            talk(agent("helper"), held, "hello", session_id=name)
    if "at" in options:
        options = {"session_id": "s1", **options}
    new = InMemorySessionService()
    with pytest.raises(tracefork.UsageError, match=message):
        asyncio.run(fork_session(tape, new, **options))
    assert new.sessions == {}


def test_a_tape_without_sessions_is_refused(tape: Path) -> None:
    """Its run used no ADK, or no adapter was installed."""
    with tracefork.record(tape):
        pass
    with pytest.raises(tracefork.UsageError, match="has no session of Google ADK"):
        asyncio.run(fork_session(tape, InMemorySessionService()))
