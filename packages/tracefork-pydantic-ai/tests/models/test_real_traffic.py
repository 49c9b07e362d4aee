"""Recorded answers of real providers drive pydantic-ai's agents through record and replay.

    TRACEFORK_CASSETTES=pydantic-ai/tests pytest …/tests/models/test_real_traffic.py

runs all cassettes of a folder: those of pydantic-ai's own test suite, say. Without that it runs a
few for each model, whole and streamed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pydantic_ai import Agent, Tool, capture_run_messages
from pydantic_ai.usage import UsageLimits
from traffic.cassettes import CassetteServer, Interaction, interactions

import tracefork_core as tracefork
from tracefork_testkit import closed_network

FOLDER = Path(__file__).parents[5] / "shared" / "traffic" / "cassettes" / "pydantic-ai"
CASSETTES = Path(os.environ.get("TRACEFORK_CASSETTES", FOLDER))
FEW = 2

pytestmark = pytest.mark.skipif(
    not CASSETTES.is_dir(), reason="recorded traffic of real providers is not ours to publish"
)


def openai_chat(name: str, url: str) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


def openai_responses(name: str, url: str) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=client))


def anthropic(name: str, url: str) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def google(name: str, url: str) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key="none"))


def bedrock(name: str, url: str) -> Any:
    import boto3
    from botocore.config import Config
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )
    return BedrockConverseModel(name, provider=BedrockProvider(bedrock_client=client))


def groq(name: str, url: str) -> Any:
    from groq import AsyncGroq
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    client = AsyncGroq(base_url=url, api_key="none", max_retries=0)
    return GroqModel(name, provider=GroqProvider(groq_client=client))


def mistral(name: str, url: str) -> Any:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralModel(name, provider=MistralProvider(base_url=url, api_key="none"))


_ENDS: tuple[tuple[str, str, Callable[[str, str], Any]], ...] = (
    ("api.groq.com", "/chat/completions", groq),
    ("api.mistral.ai", "/chat/completions", mistral),
    ("", "/chat/completions", openai_chat),
    ("", "/responses", openai_responses),
    ("api.anthropic.com", "/v1/messages", anthropic),
    ("", ":generateContent", google),
    ("", ":streamGenerateContent", google),
    ("", "/converse", bedrock),
    ("", "/converse-stream", bedrock),
)


def kind_of(one: Interaction) -> tuple[Callable[[str, str], Any], str, bool] | None:
    """Return what makes the model of a call, its name, and whether it streams; None if none."""
    path = one.target.partition("?")[0]
    for host, end, make in _ENDS:
        if one.method == "POST" and host in one.host and path.endswith(end):
            try:
                asked = json.loads(one.request_body)
            except ValueError:  # A test of what a provider says to that.
                return None
            name = asked.get("model") or unquote(path.split("/models/")[-1].split("/model/")[-1])
            name = str(name).partition(":generate")[0].partition(":stream")[0].split("/")[0]
            return make, name, bool(asked.get("stream")) or "stream" in path.lower()
    return None


def tools_of(one: Interaction) -> list[Tool[Any]]:
    """Return the tools that a request offered."""

    def named(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            schema = {"parameters", "input_schema", "inputSchema", "parametersJsonSchema"}
            if isinstance(value.get("name"), str) and schema & value.keys():
                yield value["name"]
            else:
                for inner in value.values():
                    yield from named(inner)
        if isinstance(value, list):
            for inner in value:
                yield from named(inner)

    asked = json.loads(one.request_body)
    names = dict.fromkeys(named([asked.get("tools"), asked.get("toolConfig")]))
    schema = {"type": "object", "additionalProperties": True}
    return [Tool.from_schema(worked, name, "It works.", schema) for name in names]


ran: list[Any] = []


def worked(**given: Any) -> str:
    ran.append(given)
    return f"It worked {len(ran)} times."


OVER = Interaction(
    "",
    "",
    "",
    "",
    [],
    b"",
    400,
    [("content-type", "application/json")],
    b'{"error": "It is over."}',
)


class Server(CassetteServer):
    """Answers with the interactions of a cassette, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[Interaction] = []

    def take(self) -> Interaction:
        return self.left.pop(0) if self.left else OVER


def chosen() -> Iterator[tuple[str, list[Interaction]]]:
    """Yield the cassettes with calls of models: all, or a few of each kind."""
    calls = (one for one in interactions(CASSETTES) if kind_of(one))
    taken: Counter[object] = Counter()
    for source, group in groupby(calls, lambda one: one.source):
        cassette = list(group)
        kinds = {(kind[0], kind[2]) for kind in map(kind_of, cassette) if kind}
        if "TRACEFORK_CASSETTES" in os.environ or any(taken[kind] < FEW for kind in kinds):
            taken.update(kinds)
            yield source, cassette


async def converse(
    cassette: Sequence[Interaction], server: Server, model: Callable[..., Any]
) -> list[str]:
    """Ask what the cassette's models were asked for; return the messages, or what was raised."""
    outcomes, history = [], None
    for kind, calls in groupby(cassette, kind_of):
        server.left = list(calls)
        assert kind is not None
        make, name, streams = kind
        tools = {tool.name: tool for one in server.left for tool in tools_of(one)}
        left = len(server.left)
        while left > 0:
            # Few tokens, so that no client asks for a stream where the cassette has none.
            agent = Agent(
                model(make, name, server.url),
                tools=list(tools.values()),
                model_settings={"max_tokens": 1000},
                retries=5,
            )
            limits = UsageLimits(request_limit=left)
            messages: Any = []
            try:
                with capture_run_messages() as messages:
                    if streams:
                        async with agent.run_stream(
                            "Go on.", message_history=history, usage_limits=limits
                        ) as result:
                            async for _ in result.stream_text(debounce_by=None):
                                pass
                    else:
                        result = await agent.run(
                            "Go on.", message_history=history, usage_limits=limits
                        )
                history = result.all_messages()
                outcomes.append(result.all_messages_json().decode())
                asked = result.usage.requests if not callable(result.usage) else 1
            except tracefork.DivergenceError:
                raise
            except Exception as error:
                history, asked = None, max(1, sum(it.kind == "response" for it in messages))
                outcomes.append(f"{type(error).__name__}: {error}")
            left -= max(1, asked)
    return outcomes


def test_real_answers_drive_agents_through_record_and_replay(
    tape: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each cassette with calls of models: the messages of its agents, or the errors, are equal."""
    cassettes = dict(chosen())

    async def all_of_them(server: Server) -> dict[str, list[str]]:
        model = lru_cache(None)(lambda make, name, url: make(name, url))  # Of this event loop.
        return {source: await converse(it, server, model) for source, it in cassettes.items()}

    ran.clear()
    with Server() as server, tracefork.record(tape):
        recorded = asyncio.run(all_of_them(server))
    calls = len(ran)
    with closed_network() as network, tracefork.replay(tape) as replayed:
        again = asyncio.run(all_of_them(server))
    assert not network.attempts
    assert len(ran) == calls
    equal = sum(recorded[source] == again[source] for source in cassettes)
    with capsys.disabled():
        failed = sum(outcome[:1] != "[" for outcomes in recorded.values() for outcome in outcomes)
        print(
            f"\n{equal} of {len(cassettes)} cassettes equal: {replayed.exchanges} exchanges, ",
            end="",
        )
        print(f"{calls} calls of tools, {failed} errors")
    assert equal == len(cassettes) > 0
