"""Ask real servers with ADK's models, with keys while recording and without them in a replay."""

from __future__ import annotations

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Else LiteLLM asks GitHub for prices.
os.environ["ADK_SUPPRESS_GEMINI_LITELLM_WARNINGS"] = "True"

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.adk.runners import InMemoryRunner
from google.genai import types

import tracefork_core as tracefork
from tracefork_testkit import Fault, ModelRequest, ProviderServer, closed_network, directed
from tracefork_testkit.script import Outcome

KEYS = ("GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
QUESTION = '@call weather {"city": "Rome"}\n@then\n@say It is sunny in Rome, take a hat.'


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what ADK and the SDKs below it do, with tracefork and without it."""
    for ignored in (
        "ignore:.*:DeprecationWarning",
        "ignore:.*:PendingDeprecationWarning",
        "ignore:.*EXPERIMENTAL.*:UserWarning",
        "ignore:.*:ResourceWarning",
        "ignore:.*Pydantic.*:UserWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


def script(request: ModelRequest) -> Outcome:
    """Do as the question says; a model whose name says so is overloaded."""
    return Fault(status=503) if "overloaded" in request.model else directed(request)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose answers differ each time, so that none is right by accident."""
    with ProviderServer(script, nondeterministic=True) as server:
        yield server


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


async def _events(model: Any, *, stream: bool) -> AsyncIterator[Event]:
    runner = InMemoryRunner(LlmAgent(name="helper", model=model, tools=[weather]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    mode = StreamingMode.SSE if stream else StreamingMode.NONE
    running = runner.run_async(
        user_id="ann",
        session_id=session.id,
        new_message=asked,
        run_config=RunConfig(streaming_mode=mode),
    )
    async with aclosing(running) as events:
        async for event in events:
            yield event


@pytest.fixture
def ask() -> Callable[..., list[str]]:
    """Run an agent with a model and a tool to its end, and return its events as JSON."""

    def run(model: Any, *, stream: bool = False) -> list[str]:
        async def collect() -> list[str]:
            return [event.model_dump_json() async for event in _events(model, stream=stream)]

        return asyncio.run(collect())

    return run


@pytest.fixture
def twice(
    server: ProviderServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, take the keys away and close the network, and replay it."""

    def run(
        action: Callable[[], Any],
        keys: Sequence[str] = KEYS,
        between: Callable[[], object] = lambda: None,
    ) -> tuple[Any, Any]:
        for key in keys:
            monkeypatch.setenv(key, "k-secret-4711")
        with tracefork.record(tape):
            recorded = action()
        assert b"k-secret-4711" not in tape.read_bytes()
        assert server.requests
        server.stop()
        for key in keys:
            monkeypatch.delenv(key)
        between()
        with closed_network() as network, tracefork.replay(tape, strict=True) as replayed:
            again = action()
        assert network.attempts == []
        assert replayed.digest == replayed.tape.digest
        return recorded, again

    return run
