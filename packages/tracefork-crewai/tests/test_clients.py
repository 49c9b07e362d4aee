"""Every LLM of CrewAI records and replays in every way to call it, or is refused by name."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from crewai import LLM
from crewai.llms.base_llm import BaseLLM
from crewai.llms.providers.openai import completion

import tracefork_core as tracefork
import tracefork_crewai
from tracefork_testkit import ClosedNetwork, ProviderServer, closed_network

# google-genai subclasses aiohttp's session, which aiohttp warns about.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

KEY = {"api_key": "none"}
V1: dict[str, Any] = {**KEY, "base_url": "{url}/v1"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("openai/gpt-4o-mini", V1),
    "responses": ("openai/gpt-4o-mini", {**V1, "api": "responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", {**KEY, "client_params": {"base_url": "{url}"}}),
    "gemini": (
        "gemini/gemini-2.0-flash",
        {**KEY, "client_params": {"http_options": {"base_url": "{url}"}}},
    ),
    "azure": ("azure/gpt-4o", {**KEY, "endpoint": "{url}"}),
    "azure responses": ("azure/gpt-4o", {**KEY, "endpoint": "{url}", "api": "responses"}),
    "deepseek": ("deepseek/deepseek-chat", V1),
    "ollama": ("ollama/llama3", V1),
    "litellm": ("openai/gpt-4o-mini", {**V1, "is_litellm": True}),
    "litellm groq": ("groq/llama3", V1),
    "litellm anthropic": (
        "anthropic/claude-3-haiku",
        {**KEY, "base_url": "{url}", "is_litellm": True},
    ),
}
WAYS = ("call", "acall", "stream", "astream")


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for the whole test: the async clients of an LLM are bound to it."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def made(url: str, loop: asyncio.Runner) -> Iterator[Callable[..., Any]]:
    """Make an LLM of a kind that calls the server; its connections are closed after the test."""
    llms: list[Any] = []

    def make(kind: str, **options: Any) -> Any:
        model, known = KINDS[kind]
        llms.append(LLM(model=model, **{**_at(known, url), **options}))
        return llms[-1]

    yield make
    loop.run(_close(llms))


def _at(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {name: _at(part, url) for name, part in value.items()}
    return value.format(url=url) if isinstance(value, str) else value


async def _close(llms: list[Any]) -> None:
    for llm in [*llms, *(getattr(it, "_responses_delegate", None) for it in llms)]:
        for name in ("_client", "_async_client"):
            client: Any = getattr(llm, name, None)
            if type(client).__module__ == "google.genai.client":
                await client.aio.aclose()
            if client is not None and isawaitable(closing := client.close()):
                await closing
    if "litellm" in sys.modules:
        await sys.modules["litellm"].close_litellm_async_clients()


@pytest.fixture
def ask(loop: asyncio.Runner) -> Callable[..., str]:
    """Call an LLM in one of the ways, and return its answer."""

    def run(llm: Any, way: str, prompt: str = "Hello.") -> str:
        llm.stream = way.endswith("stream")
        if way.startswith("a"):
            return str(loop.run(llm.acall(prompt)))
        return str(llm.call(prompt))

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_an_llm_records_and_replays(
    made: Any, ask: Any, server: ProviderServer, tape: Path, kind: str
) -> None:
    """Each way to call it is an exchange, and comes from the tape with the network closed.

    The LLM is made before the session that is recorded, and a new one in the replay. With another
    prompt the caller gets the divergence itself, whatever the SDK does with errors.
    """
    llm = made(kind)
    with tracefork_crewai.record(tape):
        recorded = [ask(llm, way) for way in WAYS]
    assert all(recorded)
    assert len(set(recorded)) == len(server.requests) == len(WAYS)
    server.stop()
    with closed_network() as network, tracefork_crewai.replay(tape) as run:
        llm = made(kind)
        assert [ask(llm, way) for way in WAYS] == recorded
    assert network.attempts == []
    assert run.digest == run.tape.digest
    with pytest.raises(tracefork.DivergenceError), tracefork_crewai.replay(tape):
        _all_diverge(lambda way: ask(llm, way, "Good evening."))


def _all_diverge(ask: Callable[[str], object]) -> None:
    for way in WAYS:
        with pytest.raises(tracefork.DivergenceError, match="differs from recorded exchange 0"):
            ask(way)


def test_a_custom_llm_without_requests_is_allowed(tape: Path) -> None:
    """A class of the user's own is not refused, since its library is not known."""

    class Parrot(BaseLLM):
        def call(self, messages: Any, *_: Any, **__: Any) -> str:
            self._emit_call_started_event(messages)
            return "Hello."

    with tracefork_crewai.record(tape):
        assert Parrot(model="parrot").call("Hello.") == "Hello."


@pytest.mark.parametrize("way", ["call", "acall", "crew"])
def test_bedrock_is_refused_by_name(
    ask: Any, crew: Any, tape: Path, monkeypatch: Any, no_network: ClosedNetwork, way: str
) -> None:
    """Without its adapter. No request is sent, not even a count."""
    monkeypatch.setattr("tracefork_crewai.clients._has_bedrock", lambda: False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    llm = LLM(model="bedrock/amazon.nova-lite-v1:0", region_name="us-east-1")
    with (
        pytest.raises(tracefork.UsageError, match=r"BedrockCompletion\('amazon.*is_litellm=True"),
        tracefork_crewai.record(tape),
    ):
        _ = crew(llm_=llm, write="Hello.").kickoff() if way == "crew" else ask(llm, way)
    assert no_network.attempts == []


@pytest.mark.parametrize("is_streamed", [False, True])
def test_bedrock_replays_with_its_adapter(
    tape: Path, monkeypatch: pytest.MonkeyPatch, is_streamed: bool
) -> None:
    """The client of boto3 that CrewAI makes is recorded by tracefork-bedrock."""
    pytest.importorskip(
        "tracefork_bedrock", reason="it is in the environment of the newest version"
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEOFTRACE4")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-example")

    def run() -> Any:
        llm = LLM(model="bedrock/amazon.nova-lite-v1:0", region_name="us-east-1")
        llm.stream = is_streamed
        return llm.call("@say Hello.")

    with ProviderServer(nondeterministic=True) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        with tracefork_crewai.record(tape):
            recorded = run()
    with tracefork_crewai.replay(tape, strict=True):
        assert run() == recorded
    with tracefork.Tape.open(tape) as opened:
        assert [one.url.rpartition("/")[2] for one in opened.exchanges] == [
            "converse-stream" if is_streamed else "converse"
        ]


def test_native_code_of_litellm_is_refused_by_name(
    made: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With LITELLM_RUST set, an LLM of LiteLLM is refused before it sends anything."""
    monkeypatch.setenv("LITELLM_RUST", "1")
    with tracefork_crewai.record(tape), pytest.raises(tracefork.UsageError, match="LITELLM_RUST"):
        made("litellm").call("Hello.")


def test_a_session_forgets_what_crewai_learned_about_models(tape: Path) -> None:
    """A session starts with the knowledge of a new process."""
    learned = completion._LEARNED_RESPONSES_ONLY_MODELS
    learned.add("some-model")
    with tracefork_crewai.record(tape):
        assert not learned


@pytest.mark.skipif(
    version("crewai") == "1.15.10", reason="CrewAI 1.15.10 does not wait for a rate limit"
)
@pytest.mark.parametrize("way", ["call", "acall"])
def test_a_replay_does_not_wait_for_a_rate_limit(
    made: Any, ask: Any, server: ProviderServer, tape: Path, monkeypatch: Any, way: str
) -> None:
    """The recording waits 10 ms, and the replay would have to wait a minute."""

    def wait(seconds: float) -> None:
        for name in ("INITIAL", "MAX"):
            monkeypatch.setattr(
                import_module("crewai.llms.retry"), f"_LLM_RATE_LIMIT_{name}_DELAY_SECONDS", seconds
            )

    wait(0.01)
    prompt = "@fail 429\n@say At last."
    with tracefork_crewai.record(tape):
        assert ask(made("openai", max_retries=0), way, prompt).startswith("At last.")
    assert len(server.requests) == 2
    wait(60)
    with tracefork_crewai.replay(tape):
        assert ask(made("openai", max_retries=0), way, prompt).startswith("At last.")
