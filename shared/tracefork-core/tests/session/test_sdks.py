"""A divergence under an SDK: one attempt, the reason in its error, and no retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tracefork_core import DivergenceError, EgressError, record, replay
from tracefork_testkit import Fault, ProviderServer, Reply

Ask = Callable[[str, str], str]


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def openai_sync(url: str, text: str) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=4) as client:
        answer = client.chat.completions.create(model="m", messages=say(text))
        return answer.choices[0].message.content


def openai_async(url: str, text: str) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=4) as client:
            answer = await client.chat.completions.create(model="m", messages=say(text))
            return answer.choices[0].message.content

    return asyncio.run(ask())


def anthropic_sync(url: str, text: str) -> Any:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=4) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=say(text))
        return answer.content[0].text


def anthropic_async(url: str, text: str) -> Any:
    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=4) as client:
            answer = await client.messages.create(model="m", max_tokens=9, messages=say(text))
            return answer.content[0].text

    return asyncio.run(ask())


SDKS = [openai_sync, openai_async, anthropic_sync, anthropic_async]
every_sdk = pytest.mark.parametrize("ask", SDKS, ids=lambda ask: ask.__name__)


@every_sdk
def test_a_run_replays_equal(tape: Path, provider: ProviderServer, ask: Ask) -> None:
    """The control: the same answers and digest, and nothing is sent."""
    with record(tape):
        first = [ask(provider.url, text) for text in ("one", "two", "one")]
    heard = len(provider.requests)
    with replay(tape) as run:
        assert [ask(provider.url, text) for text in ("one", "two", "one")] == first
    assert run.digest == run.tape.digest
    assert len(provider.requests) == heard


@every_sdk
def test_an_sdk_does_not_retry_a_divergence(tape: Path, provider: ProviderServer, ask: Ask) -> None:
    """Its error holds our text, and the block raises the divergence."""
    with record(tape):
        ask(provider.url, "hello")
    seen: list[Exception] = []

    def run() -> int:
        with replay(tape) as replaying:
            try:
                ask(provider.url, "hallo")
            except Exception as error:
                seen.append(error)
                raise
            finally:
                attempts.append(replaying)
        return 0

    attempts: list[Any] = []
    with pytest.raises(DivergenceError, match="hallo"):
        run()
    assert attempts[0].exchanges == 1
    assert "exchange 0" in str(seen[0])


@every_sdk
def test_a_divergence_swallowed_under_an_sdk_is_raised_again(
    tape: Path, provider: ProviderServer, ask: Ask
) -> None:
    """By every later call, and by the end of the block."""
    with record(tape):
        ask(provider.url, "hello")

    def run() -> None:
        with replay(tape):
            for text in ("hallo", "hello"):
                with suppress(Exception):
                    ask(provider.url, text)

    with pytest.raises(DivergenceError, match="hallo"):
        run()


@every_sdk
def test_each_retry_is_an_exchange(tape: Path, ask: Ask) -> None:
    """Two refused attempts and the answer are three exchanges, and replay alike."""
    overloaded = Fault(status=503, headers={"retry-after-ms": "1"})
    script: list[Reply | Fault] = [overloaded, overloaded, Reply(text="at last")]
    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        assert ask(url, "hello") == "at last"
    with replay(tape) as run:
        assert ask(url, "hello") == "at last"
    assert [exchange.status for exchange in run.tape.exchanges] == [503, 503, 200]
    assert run.exchanges == 3


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/traces/ingest",
        "https://us.i.posthog.com/batch",
        "https://os-api.agno.com/telemetry/runs",
    ],
)
def test_telemetry_is_refused_without_failing_the_run(
    tape: Path, provider: ProviderServer, http: Any, url: str
) -> None:
    """Reports of frameworks about themselves are not sent at replay, and are no divergence."""
    with record(tape):
        http.get(f"{provider.url}/echo")
    with replay(tape) as run:
        with pytest.raises(EgressError):
            http.post(url, json={"event": "run"})
        http.get(f"{provider.url}/echo")
    assert run.digest == run.tape.digest
