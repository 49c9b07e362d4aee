"""What people use on top of Bedrock: LangChain by boto3's clients, others by clients of HTTP.

Each is recorded in sync, async and streamed code where it has them, and replayed with the server
gone, with no credentials and no region.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import langchain_aws
import litellm
import pytest

import tracefork_core as tracefork
from tracefork_core.providers.decode import model_call
from tracefork_testkit import ProviderServer

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLEOFTRACE4",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-example",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
NOVA = "us.amazon.nova-lite-v1:0"
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
ASKED = "@say It is on its way."


def converse(url: str, how: str) -> Any:
    """Ask by ChatBedrockConverse."""
    return _by_langchain(langchain_aws.ChatBedrockConverse(model=NOVA, endpoint_url=url), how)


def invoke(url: str, how: str) -> Any:
    """Ask by ChatBedrock, which invokes a model of Anthropic's in its own format."""
    model = langchain_aws.ChatBedrock(model=CLAUDE, endpoint_url=url, provider="anthropic")
    return _by_langchain(model, how)


def _by_langchain(model: Any, how: str) -> Any:
    if how == "sync":
        return model.invoke(ASKED).content
    if how == "async":
        return asyncio.run(model.ainvoke(ASKED)).content
    return [chunk.content for chunk in model.stream(ASKED)]


def by_anthropic(url: str, how: str) -> Any:
    """Ask by Anthropic's own client for Bedrock."""
    asking: Any = {
        "model": CLAUDE,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": ASKED}],
    }
    options = {"base_url": url, "aws_region": "us-east-1", "max_retries": 0}
    if how == "async":

        async def ask() -> Any:
            async with anthropic.AsyncAnthropicBedrock(**options) as client:
                return (await client.messages.create(**asking)).content[0].text

        return asyncio.run(ask())
    with anthropic.AnthropicBedrock(**options) as client:
        if how == "sync":
            return client.messages.create(**asking).content[0].text
        with client.messages.stream(**asking) as stream:
            return list(stream.text_stream)


def by_litellm(url: str, how: str) -> Any:
    """Ask by LiteLLM's bedrock/."""
    asking: Any = {
        "model": f"bedrock/converse/{NOVA}",
        "messages": [{"role": "user", "content": ASKED}],
        "aws_bedrock_runtime_endpoint": url,
        "num_retries": 0,
    }
    if how == "sync":
        return litellm.completion(**asking).choices[0].message.content
    if how == "async":
        return asyncio.run(litellm.acompletion(**asking)).choices[0].message.content
    return [it.choices[0].delta.content for it in litellm.completion(**asking, stream=True)]


@pytest.mark.filterwarnings("ignore")  # LiteLLM warns of much, and leaves clients open.
@pytest.mark.parametrize("how", ["sync", "async", "stream"])
@pytest.mark.parametrize("ask", [converse, invoke, by_anthropic, by_litellm])
def test_a_client_on_top_of_bedrock_replays_without_credentials(
    ask: Callable[[str, str], Any],
    how: str,
    server: ProviderServer,
    tape: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One exchange, a model call with its messages and usage, and no key on the tape."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url = server.url
    with tracefork.record(tape):
        answer = ask(url, how)
    server.stop()
    assert "".join(_texts(answer)).startswith("It is on its way.")
    with tracefork.Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        call = model_call(exchange)
    assert call is not None
    assert ASKED in str(call.input)
    assert call.usage is not None
    assert KEYS["AWS_SECRET_ACCESS_KEY"].encode() not in tape.read_bytes()
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    with tracefork.replay(tape, strict=True) as replayed:
        assert ask(url, how) == answer
    assert replayed.digest == replayed.tape.digest


def _texts(answer: Any) -> list[str]:
    if isinstance(answer, str):
        return [answer]
    if isinstance(answer, dict):
        return [answer.get("text") or ""]
    return [text for part in answer if part for text in _texts(part)]
