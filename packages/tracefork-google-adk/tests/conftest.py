"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments

os.environ.setdefault("GOOGLE_API_KEY", "none")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # What OpenTelemetry does on Python 3.11, when it is imported.
    import google.adk.runners  # noqa: F401

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what ADK does at each run, with tracefork and without it.

    It leaves the clients of a loop to the garbage collector, and warns of its own features.
    """
    for ignored in (
        "ignore:unclosed:ResourceWarning",
        "ignore:Inheritance class:DeprecationWarning",
        r"ignore:\[EXPERIMENTAL\]:UserWarning",
        "ignore:The `plugins` argument is deprecated:DeprecationWarning",
        r"ignore:(Sequential|Parallel|Loop)Agent is deprecated:DeprecationWarning",
        "ignore:MCPTool class is deprecated:DeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(scope="session", autouse=True)
def _collected() -> Iterator[None]:
    """Collect the last clients while the filters hold."""
    yield
    gc.collect()


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return server.url


@pytest.fixture
def agent(url: str) -> Callable[..., Any]:
    """Make an agent that asks the server: `agent("writer", "@say hi", tools=[…])`."""
    return agent_at(url)


def agent_at(url: str) -> Callable[..., Any]:
    """Return what makes agents that ask another server."""

    def make(name: str, instruction: str = "", **options: Any) -> Any:
        model = Gemini(model="gemini-2.5-flash", base_url=url)
        return LlmAgent(name=name, model=model, instruction=instruction, **options)

    return make


@pytest.fixture(name="agent_at")
def _agent_at() -> Callable[..., Any]:
    return agent_at


@asynccontextmanager
async def _events(root: Any, *, plugins: Any = (), **options: Any) -> AsyncIterator[Any]:
    """Ask an agent or a workflow one question, and close its events at the end."""
    runner, session = await _begun(root, plugins)
    asked = {"user_id": "ann", "session_id": session.id, "new_message": content("Go on.")}
    async with aclosing(runner.run_async(**asked, **options)) as events:
        yield events


@pytest.fixture
def run_events() -> Callable[..., Any]:
    """Ask an agent one question, and read its events inside of a block."""
    return _events


async def _begun(root: Any, plugins: Any, **services: Any) -> tuple[Runner, Any]:
    app = App(name="desk", root_agent=root, plugins=list(plugins))
    runner = Runner(app=app, **{"session_service": InMemorySessionService(), **services})
    session = await runner.session_service.create_session(app_name="desk", user_id="ann")
    return runner, session


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Ask an agent or a workflow one question after another, and return the session."""

    def run(root: Any, *questions: Any, plugins: Any = (), **services: Any) -> Any:
        return asyncio.run(_converse(root, questions or ("Go on.",), plugins, **services))

    return run


async def _converse(root: Any, questions: Any, plugins: Any, **services: Any) -> Any:
    runner, session = await _begun(root, plugins, **services)
    asked = {"user_id": "ann", "session_id": session.id}
    for question in questions:
        if callable(question):  # It answers what the agent waits for.
            session = await runner.session_service.get_session(
                app_name="desk", user_id="ann", session_id=session.id
            )
            question = question(session)  # noqa: PLW2901 - it is the question then
        async for _ in runner.run_async(**asked, new_message=content(question)):
            pass
    return await runner.session_service.get_session(
        app_name="desk", user_id="ann", session_id=session.id
    )


def content(question: Any) -> types.Content:
    """Return a question as the content of a message."""
    if isinstance(question, types.Content):
        return question
    return types.Content(role="user", parts=[types.Part(text=question)])
