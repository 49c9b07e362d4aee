"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from strands import Agent
from strands.models.anthropic import AnthropicModel

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore that Strands leaves the clients of some models to the garbage collector."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="session", autouse=True)
def _collected() -> Iterator[None]:
    """Collect the last clients while the filter holds."""
    yield
    gc.collect()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose answers differ each time, so that none is right by accident."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


@pytest.fixture
def agent(server: ProviderServer) -> Callable[..., Agent]:
    """Make an agent that asks the server: `agent("Billing", "@say hi", tools=[…])`."""
    url = server.url

    def make(name: str | None, instructions: str = "", **options: Any) -> Agent:
        client = {"base_url": url, "api_key": "none", "max_retries": 0}
        model = AnthropicModel(client_args=client, model_id="claude", max_tokens=100)
        given = {"model": model, "callback_handler": None, **options}
        return Agent(name=name, system_prompt=instructions, **given)

    return make


@pytest.fixture
def twice(server: ProviderServer, tape: Path) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, and replay the run; return both results."""

    def run(action: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        with tracefork.record(tape, **options):
            recorded = action()
        server.stop()
        with tracefork.replay(tape, strict=True, **options) as replayed:
            again = action()
        assert replayed.digest == replayed.tape.digest
        return recorded, again

    return run


@pytest.fixture
def paths(tape: Path) -> Callable[[], list[str]]:
    """Read the step path of each exchange on the tape, as kinds and names."""

    def read() -> list[str]:
        with tracefork.Tape.open(tape) as opened:
            steps = {step.id: step for step in opened.steps}

            def path(step: str | None) -> Iterator[str]:
                if step is not None:
                    yield from path(steps[step].parent)
                    yield f"{steps[step].kind}:{steps[step].name}"

            return [" ▸ ".join(path(exchange.step)) for exchange in opened.exchanges]

    return read
