"""Make crews that call a model over a real socket, and record and replay them."""

from __future__ import annotations

import os
import ssl
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
import tracefork_crewai
from tracefork_testkit import ProviderServer

# Before any import of crewai: this process sends no reports and leaves nothing behind.
_HOME = tempfile.TemporaryDirectory(prefix="tracefork-crewai-")
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_TRACING_ENABLED="false",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_TESTING="true",
    CREWAI_STORAGE_DIR=str(Path(_HOME.name) / "storage"),
    XDG_DATA_HOME=_HOME.name,
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    PYTHON_DOTENV_DISABLED="1",
    OTEL_SDK_DISABLED="true",
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # CrewAI and its libraries warn at import.
    from crewai import LLM, Agent, Crew, Task


_NOT_OURS = [
    r"ignore::DeprecationWarning:crewai\..*",
    r"ignore::DeprecationWarning:pydantic\..*",
]
"""Warnings that CrewAI and its libraries cause, by the module that is warned."""


def pytest_configure(config: pytest.Config) -> None:
    """Ignore unclosed clients: CrewAI leaves them to the garbage collector, in any later test."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings that CrewAI causes: only others are errors."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for line in _NOT_OURS:
                item.add_marker(pytest.mark.filterwarnings(line))


@pytest.fixture(scope="session", autouse=True)
def no_certificates() -> Iterator[None]:
    """Load no CA bundle from a file: each new client would spend 75 ms on one that is not used."""
    real = ssl.SSLContext.load_verify_locations

    def load(self: ssl.SSLContext, *_: Any, cadata: Any = None, **__: Any) -> None:
        if cadata is not None:
            real(self, cadata=cadata)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", load)
        yield


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose answers differ each time, so that none is right by accident."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return server.url


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


@pytest.fixture
def llm(url: str) -> Callable[..., Any]:
    """Make an LLM that calls the server."""

    def make(model: str = "openai/gpt-4o-mini", **options: Any) -> Any:
        return LLM(model=model, **{"base_url": f"{url}/v1", "api_key": "none", **options})

    return make


@pytest.fixture
def crew(llm: Callable[..., Any]) -> Callable[..., Any]:
    """Make a crew of the named tasks, each with an agent of its own whose role is the name.

    `crew(research="@say Facts.", write="@say Prose.")` has two tasks. More options: `agents_` for
    every agent, `tasks_` for the tasks it names, `options_` for the crew, and `llm_` for all
    agents. `tasks_` may contain another agent (`agent=`) for a task.
    """

    def make(
        *,
        llm_: Any = None,
        agents_: dict[str, Any] | None = None,
        tasks_: dict[str, dict[str, Any]] | None = None,
        options_: dict[str, Any] | None = None,
        **prompts: str,
    ) -> Any:
        model = llm_ or llm()

        def agent(name: str) -> Any:
            known = {"role": name.capitalize(), "goal": "help", "backstory": "You help."}
            return Agent(**{**known, "llm": model, **(agents_ or {})})

        def task(name: str, prompt: str) -> Any:
            own = {"agent": agent(name), **(tasks_ or {}).get(name, {})}
            return Task(name=name, description=prompt, expected_output="an answer", **own)

        made = [task(name, prompt) for name, prompt in prompts.items()]
        agents = list({id(it.agent): it.agent for it in made if it.agent is not None}.values())
        return Crew(**{"name": "desk", "agents": agents, "tasks": made, **(options_ or {})})

    return make


@pytest.fixture
def twice(server: ProviderServer, tape: Path) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, and replay the run; return both results.

    The action makes a new crew each time: a crew that has run sends other requests.
    """

    def run(action: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        with tracefork_crewai.record(tape, **options):
            recorded = action()
        server.stop()
        with tracefork_crewai.replay(tape, **options) as replayed:
            again = action()
        assert replayed.digest == replayed.tape.digest
        return recorded, again

    return run


@pytest.fixture
def paths(tape: Path) -> Callable[[], list[tuple[str, ...]]]:
    """Read the step path of each exchange on the tape."""

    def read() -> list[tuple[str, ...]]:
        with tracefork.Tape.open(tape) as opened:
            return [opened.step_path(exchange.step) for exchange in opened.exchanges]

    return read
