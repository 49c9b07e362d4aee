"""Models, tools and agents over a real socket, and the ways to drive them."""

from __future__ import annotations

import asyncio
import logging
import ssl
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core._api import LangChainBetaWarning
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.pregel import Pregel

import tracefork_core as tracefork
from tracefork_langgraph import attach, detach, listening
from tracefork_testkit import ProviderServer

KINDS = {"chat": "ChatOpenAI", "responses": "ChatOpenAI", "anthropic": "ChatAnthropic"}
WAYS = ["invoke", "ainvoke", "stream", "astream", "messages", "amessages", "events"]
if hasattr(Pregel, "stream_events"):
    WAYS += ["events3"]  # came with LangGraph 1.2
TICKET = """\
@call lookup_order {"order": 17}
@call search_policy {"query": "refund"}
@call current_time {}
@then
@say Your refund is on its way."""


def pytest_configure(config: pytest.Config) -> None:
    """Leave unclosed connections of models to the garbage collector, as LangChain does."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `kind` or `way` once for each kind of model, or way to run a graph."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", KINDS)
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", WAYS)


def lookup_order(order: int) -> str:
    """Look up an order."""
    return f"order {order} was delivered"


def search_policy(query: str) -> str:
    """Search the policies."""
    return f"{query}: within 30 days"


def current_time() -> str:
    """Tell the time."""
    return datetime.now(UTC).isoformat()


@pytest.fixture(scope="session", autouse=True)
def no_certificates() -> Iterator[None]:
    """Load no CA bundle: nothing here uses TLS, and each new client would parse it for 75 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        yield


@pytest.fixture(autouse=True)
def nothing_attached() -> None:
    """Forget what another test attached and left to the garbage collector."""
    listening._listening.clear()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose answers differ each time, so that no answer is right by accident."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Where the tape of the test goes."""
    return tmp_path / "run.tape"


@pytest.fixture
def model(server: ProviderServer) -> Callable[..., Any]:
    """Make a chat model of a kind that calls the server."""

    def make(kind: str = "chat", **options: object) -> Any:
        if kind == "anthropic":
            options = {"model_provider": "anthropic", "base_url": server.url, **options}
        else:
            url = f"{server.url}/v1"
            options = {"model_provider": "openai", "base_url": url, **options}
            options["use_responses_api"] = kind == "responses"
        return init_chat_model("some-model", api_key="none", **options)

    return make


@pytest.fixture
def agent(model: Callable[..., Any]) -> Callable[..., Any]:
    """Make an agent with three tools, whose model is of a kind."""

    def make(kind: str = "chat", prompt: str = "You help.", **options: object) -> Any:
        tools = [lookup_order, search_policy, current_time]
        return create_agent(model(kind, **options), tools, system_prompt=prompt, name="support")

    return make


@pytest.fixture
def drive() -> Callable[..., list[object]]:
    """Run a graph in one of the ways, and return what can be compared between runs."""

    def run(graph: Any, way: str, question: Any = TICKET) -> list[object]:
        state = {"messages": [("user", question)]} if isinstance(question, str) else question
        match way:
            case "invoke":
                return heard(graph.invoke(state))
            case "ainvoke":
                return heard(asyncio.run(graph.ainvoke(state)))
            case "stream":
                return heard(list(graph.stream(state)))
            case "messages":
                return heard(list(graph.stream(state, stream_mode="messages")))
            case "astream":
                return heard(asyncio.run(_collect(graph.astream(state))))
            case "amessages":
                return heard(asyncio.run(_collect(graph.astream(state, stream_mode="messages"))))
            case "events":
                return heard(asyncio.run(_collect(graph.astream_events(state, version="v2"))))
            case "events3":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", LangChainBetaWarning)
                    return heard(graph.stream_events(state, version="v3").output)
        raise AssertionError(way)

    return run


async def _collect(stream: Any) -> list[Any]:
    return [item async for item in stream]


def heard(value: Any) -> list[object]:
    """Return what was said, without the ids that LangChain generates.

    Messages of models keep their order. Tools that run in parallel threads finish in any order:
    LangGraph sorts them in the state, but not in its streams. So they are sorted here.
    """
    found = list(_parts(value))
    said = [part for part in found if part[0] == "ai"]
    return [*said, *sorted(part for part in found if part[0] != "ai")]


def _parts(value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, BaseMessage):
        kind = "ai" if isinstance(value, AIMessage) else value.type
        yield kind, str(value.content), str(getattr(value, "tool_calls", None))
    elif isinstance(value, dict):
        for part in value.values():
            yield from _parts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    elif isinstance(value, str) and value.startswith("on_"):
        yield "event", value


@pytest.fixture
def twice(server: ProviderServer, tape: Path) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, and replay it; return both results."""

    def run(action: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        with tracefork.record(tape, **options):
            recorded = action()
        server.stop()
        with tracefork.replay(tape, **options):
            return recorded, action()

    return run


@pytest.fixture
def name_of(kind: str) -> str:
    """The name of the model's steps."""
    return KINDS[kind]


@pytest.fixture
def paths(tape: Path) -> Callable[[], list[tuple[str, ...]]]:
    """Read the step path of each exchange on the tape."""

    def read() -> list[tuple[str, ...]]:
        with tracefork.Tape.open(tape) as opened:
            return [opened.step_path(exchange.step) for exchange in opened.exchanges]

    return read


@pytest.fixture
def attempts() -> Iterator[list[str]]:
    """The requests that were answered, live or not, as httpx and httpx2 log them."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("HTTP Request"):
                lines.append(record.getMessage())

    loggers = [logging.getLogger(name) for name in ("httpx", "httpx2")]
    listener = Listener()
    for logger in loggers:
        logger.setLevel(logging.INFO)
        logger.addHandler(listener)
    yield lines
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(listener)


@pytest.fixture
def attached() -> Iterator[Callable[[Any], Any]]:
    """Attach for the duration of the test."""
    seen: list[Any] = []

    def until_the_end(x: Any) -> Any:
        seen.append(attach(x))
        return x

    yield until_the_end
    for x in seen:
        detach(x)
