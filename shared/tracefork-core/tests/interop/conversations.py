"""Conversations of the real SDKs with scripted providers, recorded for the tests of exports."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

from tracefork_core import record, tool
from tracefork_core.adapters import step
from tracefork_testkit import ProviderServer

IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n and the rest").decode()
ASKS_TOOL = (
    'Weather in Oslo?\n@think Look it up.\n@call look_up {"city": "Oslo"}\n@then\n@say Sunny.'
)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
SYSTEM = "Be brief."


def openai_chat(url: str) -> None:
    """Ask with an image, run a tool, answer in a stream, and fail."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none", max_retries=0)
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    asked: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": ASKS_TOOL}, picture]},
    ]
    function = {"name": "look_up", "description": "Look up.", "parameters": SCHEMA}
    tools: Any = [{"type": "function", "function": function}]
    make = client.chat.completions.create
    answer = make(model="gpt-5-mini", messages=asked, tools=tools, temperature=0)
    message = answer.choices[0].message
    call = message.tool_calls[0]
    asked += [
        message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": look_up("Oslo")},
    ]
    for _ in make(model="gpt-5-mini", messages=asked, tools=tools, stream=True):
        pass
    with suppress(openai.APIError):
        make(model="gpt-5-mini", messages=[{"role": "user", "content": "Fail. @fail 500 99"}])
    client.embeddings.create(model="text-embedding-3-small", input=["one", "two"])


def openai_responses(url: str) -> None:
    """The same with the Responses API, whose reasoning is an item of its own."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none", max_retries=0)
    tools: Any = [{"type": "function", "name": "look_up", "parameters": SCHEMA, "strict": False}]
    asked: list[Any] = [{"role": "user", "content": ASKS_TOOL}]
    make = client.responses.create
    answer = make(model="gpt-5", instructions=SYSTEM, input=asked, tools=tools)
    call = next(item for item in answer.output if item.type == "function_call")
    asked += [item.to_dict() for item in answer.output]
    asked.append(
        {"type": "function_call_output", "call_id": call.call_id, "output": look_up("Oslo")}
    )
    for _ in make(model="gpt-5", input=asked, tools=tools, stream=True):
        pass


def anthropic_messages(url: str) -> None:
    """The same with Anthropic, whose results of tools are messages of the user."""
    client = anthropic.Anthropic(base_url=url, api_key="sk-none", max_retries=0)
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    parts: Any = [{"type": "text", "text": ASKS_TOOL}, {"type": "image", "source": source}]
    asked: list[Any] = [{"role": "user", "content": parts}]
    tools: Any = [{"name": "look_up", "description": "Look up.", "input_schema": SCHEMA}]
    make = client.messages.create
    common: Any = {"model": "claude-sonnet-5", "max_tokens": 64, "system": SYSTEM, "tools": tools}
    answer = make(messages=asked, **common)
    call = next(block for block in answer.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": look_up("Oslo")}
    asked += [
        {"role": "assistant", "content": [block.to_dict() for block in answer.content]},
        {"role": "user", "content": [result]},
    ]
    for _ in make(messages=asked, stream=True, **common):
        pass
    with suppress(anthropic.APIError):
        make(messages=[{"role": "user", "content": "Fail. @fail 429 99"}], **common)


def gemini(url: str) -> None:
    """The same with Gemini, whose tools have no ids."""
    options = types.HttpOptions(base_url=url)
    client = genai.Client(api_key="none", http_options=options)
    declared: Any = {"name": "look_up", "parameters": {"type": "OBJECT"}}
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, tools=[types.Tool(function_declarations=[declared])]
    )
    asked: list[Any] = [
        types.Content(
            role="user",
            parts=[
                types.Part(text=ASKS_TOOL),
                types.Part.from_bytes(data=base64.b64decode(IMAGE), mime_type="image/png"),
            ],
        )
    ]
    model = "gemini-3-pro"
    answer = client.models.generate_content(model=model, contents=asked, config=config)
    asked += [
        answer.candidates[0].content,
        types.Content(
            role="user",
            parts=[
                types.Part.from_function_response(
                    name="look_up", response={"result": look_up("Oslo")}
                )
            ],
        ),
    ]
    for _ in client.models.generate_content_stream(model=model, contents=asked, config=config):
        pass


CONVERSATIONS: dict[str, Callable[[str], None]] = {
    talk.__name__: talk for talk in (openai_chat, openai_responses, anthropic_messages, gemini)
}


@tool(effect="read")
def look_up(city: str) -> str:
    """Return the weather of a city."""
    return f"{city} is sunny"


def record_conversation(name: str, tape: Path, provider: ProviderServer) -> Path:
    """Record a conversation, in a step of an agent."""
    with record(tape), step("agent", "weather desk"):
        CONVERSATIONS[name](provider.url)
    return tape
