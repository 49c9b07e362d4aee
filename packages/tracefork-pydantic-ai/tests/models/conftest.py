"""Ask real servers with pydantic-ai's models, with keys while recording and without in a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

import tracefork_core as tracefork
from tracefork_testkit import Fault, ModelRequest, ProviderServer, closed_network, directed
from tracefork_testkit.script import Outcome

KEYS = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "OPENROUTER_API_KEY"),
)
SECRET = "k-secret-4711"
QUESTION = '@call weather {"city": "Rome"}\n@then\n@say It is sunny in Rome, take a hat.'


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the SDKs do, with tracefork and without it."""
    for ignored in ("ignore:.*:DeprecationWarning", "ignore:.*:ResourceWarning"):
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
def ask() -> Callable[..., str]:
    """Run an agent with a model and a tool to its end, and return its messages as JSON."""

    def run(model: Any, *, stream: bool = False) -> str:
        agent = Agent(model, name="helper", instructions="Help.")

        @agent.tool_plain
        def weather(city: str) -> str:
            """Return the weather of a city."""
            return f"sunny in {city}"

        async def whole() -> Any:
            return await agent.run(QUESTION)

        async def streamed() -> Any:
            async with agent.run_stream(QUESTION) as result:
                async for _ in result.stream_text(debounce_by=None):
                    pass
            return result

        result = asyncio.run(streamed() if stream else whole())
        return str(result.all_messages_json().decode())

    return run


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key for each provider."""
    for key in KEYS:
        monkeypatch.setenv(key, SECRET)


@pytest.fixture
def twice(
    server: ProviderServer, tape: Path, keys: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, take the keys away and close the network, and replay it."""

    def run(action: Callable[[], Any], *, ambient: bool = True) -> tuple[Any, Any]:
        with tracefork.record(tape, ambient=ambient):
            recorded = action()
        assert SECRET.encode() not in tape.read_bytes()
        assert server.requests
        server.stop()
        for key in KEYS:
            monkeypatch.delenv(key)
        with (
            closed_network() as network,
            tracefork.replay(tape, strict=True, ambient=ambient) as replayed,
        ):
            again = action()
        assert network.attempts == []
        assert replayed.digest == replayed.tape.digest
        return recorded, again

    return run
