"""SDKs that believe they talk to their providers' true hosts: recorded, then replayed offline."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anthropic
import openai
import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer, closed_network

KEY = "sk-true-hosts-0123456789"
QUESTION = [{"role": "user", "content": "Where is order 17?"}]


def ask_everybody() -> list[str]:
    """Ask two providers at their default addresses, sync, async and streaming."""
    openai_client = openai.OpenAI(api_key=KEY)
    chat = openai_client.chat.completions.create(model="gpt-5-mini", messages=QUESTION)
    with openai_client.responses.stream(model="gpt-5-mini", input="Where?") as stream:
        response = stream.get_final_response()

    async def ask_anthropic() -> str:
        async with anthropic.AsyncAnthropic(api_key=KEY) as client:
            stream = client.messages.stream(model="claude-x", max_tokens=64, messages=QUESTION)
            async with stream as events:
                return await events.get_final_text()

    return [
        chat.choices[0].message.content or "",
        response.output_text,
        asyncio.run(ask_anthropic()),
    ]


def test_true_hosts_replay_without_a_network(tmp_path: Path) -> None:
    """What was asked of api.openai.com and api.anthropic.com over TLS comes from the tape."""
    path = tmp_path / "hosts.tape"
    with ProviderServer(nondeterministic=True) as server, server.real_hosts():
        with tracefork.record(path) as recording:
            live = ask_everybody()
        assert len(server.requests) == 3
    assert recording.receipt is not None
    assert recording.receipt.strays == []
    with closed_network() as network, tracefork.replay(path) as replayed:
        again = ask_everybody()
    assert again == live
    assert replayed.digest == recording.digest
    assert network.attempts == []
    with tracefork.Tape.open(path) as tape:
        hosts = {exchange.url.split("/")[2] for exchange in tape.exchanges}
    assert hosts == {"api.openai.com", "api.anthropic.com"}


def test_the_key_is_nowhere_on_the_tape(tmp_path: Path) -> None:
    """The credentials that the providers saw are in no byte of any file."""
    with ProviderServer() as server, server.real_hosts():
        with tracefork.record(tmp_path / "hosts.tape"):
            ask_everybody()
        sent = [value for request in server.requests for _, value in request.headers]
    assert any(KEY in value for value in sent)
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_another_question_diverges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: one byte more in the question, and the replay refuses."""
    path = tmp_path / "hosts.tape"
    with ProviderServer() as server, server.real_hosts(), tracefork.record(path):
        ask_everybody()
    monkeypatch.setitem(QUESTION[0], "content", "Where is order 18?")
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(path):
        ask_everybody()
    assert caught.value.divergence.pointer == "/messages/0/content"
