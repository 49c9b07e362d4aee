"""Services of sessions, and a runner that asks an agent over one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

SERVICES = ("memory", "sqlite", "database")


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what ADK, SQLAlchemy and aiosqlite do, with tracefork and without it."""
    for ignored in ("ignore:.*:DeprecationWarning", "ignore:.*:ResourceWarning"):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(params=SERVICES)
def kind(request: pytest.FixtureRequest) -> str:
    """Each service of sessions in turn."""
    name: str = request.param
    return name


@pytest.fixture
def service(kind: str, tmp_path: Path) -> Callable[[], Any]:
    """Make a service; those of one test share a database."""

    def make() -> Any:
        if kind == "memory":
            return InMemorySessionService()
        if kind == "sqlite":
            from google.adk.sessions.sqlite_session_service import SqliteSessionService

            return SqliteSessionService(str(tmp_path / "sessions.db"))
        from google.adk.sessions.database_session_service import DatabaseSessionService

        return DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'sessions.db'}")

    return make


@pytest.fixture
def talk() -> Callable[..., str]:
    """Ask an agent one question after another in one session, and return the session as JSON."""

    def run(agent: Any, service: Any, *questions: str, session_id: str = "s1") -> str:
        return asyncio.run(atalk(agent, service, *questions, session_id=session_id))

    return run


async def atalk(agent: Any, service: Any, *questions: str, session_id: str = "s1") -> str:
    """Ask an agent in a session, which is created if it is not there yet."""
    asked = {"app_name": "desk", "user_id": "ann", "session_id": session_id}
    if await service.get_session(**asked) is None:
        await service.create_session(**asked, state={"user:tier": "gold", "open": True})
    runner = Runner(app_name="desk", agent=agent, session_service=service)
    for question in questions:
        message = types.Content(role="user", parts=[types.Part(text=question)])
        async for _ in runner.run_async(user_id="ann", session_id=session_id, new_message=message):
            pass
    session = await service.get_session(**asked)
    return str(session.model_dump_json())
