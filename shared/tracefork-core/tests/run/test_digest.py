"""Equal runs have equal digests, and one changed byte changes the digest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
import time_machine

from tracefork_core import record
from tracefork_testkit import Fault, ProviderServer, Reply

Agent = Callable[[str], object]
HELLO = [{"role": "user", "content": "@say hello there, world"}]


def sequential(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        for text in ("one", "two", "one"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return None


def gathered(url: str) -> object:
    async def ask() -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k") as client:
            asks = (
                client.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": f"n {i}"}]
                )
                for i in range(6)
            )
            # The SDK asks a thread for the platform once: after that, tasks ask as they started.
            await client.messages.create(model="m", max_tokens=9, messages=HELLO)
            await asyncio.gather(*asks)

    return asyncio.run(ask())


def streaming(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        stream = client.chat.completions.create(model="m", messages=HELLO, stream=True)
        return [chunk.choices for chunk in stream]


AGENTS = [sequential, gathered, streaming]


def digest_of(tape: Path, agent: Agent, url: str) -> str | None:
    with record(tape, overwrite=tape.exists()) as run:
        agent(url)
    return run.digest


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_two_recordings_of_one_agent_have_one_digest(tape: Path, agent: Agent) -> None:
    """Also at another time, at another pace and with another loopback port."""
    with ProviderServer() as server:
        first = digest_of(tape, agent, server.url)
    with (
        ProviderServer(chunk_delay=0.002, fixed_date=False) as slower,
        time_machine.travel(1_000_000_000),
    ):
        second = digest_of(tape, agent, slower.url)
    assert first == second


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_another_answer_changes_the_digest(tape: Path, agent: Agent) -> None:
    """The negative control: the digest covers answers."""
    with ProviderServer() as server:
        first = digest_of(tape, agent, server.url)
    with ProviderServer(script=lambda request: Reply(text="other")) as server:
        assert digest_of(tape, agent, server.url) != first


@pytest.mark.parametrize(
    ("method", "path", "body", "accept"),
    [
        ("POST", "/echo?a=1", b"body.", "a/b"),
        ("POST", "/echo?a=2", b"body", "a/b"),
        ("POST", "/echo/?a=1", b"body", "a/b"),
        ("PUT", "/echo?a=1", b"body", "a/b"),
        ("POST", "/echo?a=1", b"body", "a/c"),
        ("POST", "/status/201", b"body", "a/b"),
    ],
)
def test_one_changed_byte_changes_the_digest(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    method: str,
    path: str,
    body: bytes,
    accept: str,
) -> None:
    """It covers method, path, query, semantic headers and body."""

    def ask(method: str, path: str, body: bytes, accept: str) -> Agent:
        return lambda url: http.request(
            method, f"{url}{path}", content=body, headers={"accept": accept}
        )

    base = digest_of(tape, ask("POST", "/echo?a=1", b"body", "a/b"), provider.url)
    assert digest_of(tape, ask("POST", "/echo?a=1", b"body", "a/b"), provider.url) == base
    assert digest_of(tape, ask(method, path, body, accept), provider.url) != base


@pytest.mark.parametrize(("status", "same"), [(500, True), (503, False)])
def test_one_changed_status_changes_the_digest(
    tape: Path, http: httpx2.Client, status: int, *, same: bool
) -> None:
    """Two answers that differ only in their status are two runs."""

    def agent(url: str) -> object:
        return http.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": HELLO})

    digests = []
    for code in (500, status):
        with ProviderServer([Fault(status=code, message="no")]) as server:
            digests.append(digest_of(tape, agent, server.url))
    assert (digests[0] == digests[1]) is same
