"""What a run makes of the last answer is code of the agent: it runs again in a replay."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, RunContext, TextOutput
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from traffic.cassettes import CassetteServer, Interaction

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

Call = Callable[..., Any]
ran: list[str] = []


class City(BaseModel):
    name: str


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that thinks, and gives a call of an output tool or JSON, as it is asked."""
    ran.clear()

    def answer(request: ModelRequest) -> Reply:
        given = json.dumps({"name": f"city {len(request.messages)}"})
        if request.tools:
            return Reply(tool_calls=[ToolCall(request.tools[0].name, json.loads(given))])
        return Reply(given, thinking="It is a city.")

    with ProviderServer(answer) as server:
        yield server


def visited(ctx: RunContext[Any], name: str) -> str:
    ran.append("function")
    if ctx.retry == 0:
        raise ModelRetry("Another one.")
    return f"visited {name}"


def read(text: str) -> City:
    ran.append("text")
    return City.model_validate_json(text)


OUTPUTS = {
    "tool": City,
    "native": NativeOutput(City),
    "prompted": PromptedOutput(City),
    "text": TextOutput(read),
    "function": visited,
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_an_output_is_made_again(agent: Call, twice: Call, tape: Path, kind: str) -> None:
    """Output functions and validators run in both; only the model's answers are on the tape."""
    helper = agent("helper", output_type=OUTPUTS[kind], retries=3)

    @helper.output_validator
    def checked(ctx: RunContext[Any], output: Any) -> Any:
        ran.append("validator")
        if ctx.retry == 0:
            raise ModelRetry("Think again.")
        return output

    def run() -> str:
        result = asyncio.run(helper.run("Go on."))
        return repr(result.output) + result.all_messages_json().decode()

    recorded, again = twice(run)
    assert recorded == again
    half = len(ran) // 2
    assert ran[:half] == ran[half:]
    assert ran.count("validator") >= 2
    with tracefork.Tape.open(tape) as opened:
        assert not [one for one in opened.exchanges if one.aside.seam == "tool"]


def test_thinking_is_part_of_the_answer(agent: Call, twice: Call) -> None:
    """It comes from the tape with the text that follows it."""

    def run() -> list[str]:
        result = asyncio.run(agent("helper").run("Go on."))
        return [repr(part) for message in result.all_messages() for part in message.parts]

    recorded, again = twice(run)
    assert recorded == again
    assert any(ThinkingPart.__name__ in part and "It is a city." in part for part in recorded)


PICTURE = b"\x89PNG\r\n\x1a\nnot much of a picture"
HOSTED = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5-mini",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "weather in Rome"},
        },
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "result": base64.b64encode(PICTURE).decode(),
            "output_format": "png",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
        },
    ],
}


def test_hosted_tools_and_images_are_part_of_the_answer(tape: Path) -> None:
    """The provider runs them, so the tape has what they gave; no tool of the agent runs."""
    headers = [("content-type", "application/json")]
    answer = Interaction("", "", "", "", [], b"", 200, headers, json.dumps(HOSTED).encode())

    def run(url: str) -> tuple[str, bytes, list[str]]:
        provider = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
        result = asyncio.run(Agent(OpenAIResponsesModel("gpt-5", provider=provider)).run("Go on."))
        parts = [type(part).__name__ for part in result.response.parts]
        return result.all_messages_json().decode(), result.response.images[0].data, parts

    with CassetteServer() as server, tracefork.record(tape):
        server.due = answer
        recorded = run(server.url)
    with tracefork.replay(tape, strict=True):
        assert run(server.url) == recorded
    assert recorded[1] == PICTURE
    assert [part for part in recorded[2] if part.startswith("Native")]
