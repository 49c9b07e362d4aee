"""A plain loop around a model, as people write it: the program runs the tools that it calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import openai

Tools = Mapping[str, Callable[..., object]]
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def ask_openai(url: str, prompt: str, tools: Tools, **asked: Any) -> str:
    """Ask through OpenAI's SDK until the model calls no tool, and return what it says."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": prompt}]
    offered: Any = [{"type": "function", "function": {"name": name}} for name in tools]
    while True:
        answer = client.chat.completions.create(
            model="gpt-5-mini", messages=messages, tools=offered, **asked
        )
        said = answer.choices[0].message
        if not said.tool_calls:
            return said.content or ""
        messages.append(said)
        for call in said.tool_calls:
            assert call.type == "function"
            result = tools[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


def ask_anthropic(url: str, prompt: str, tools: Tools) -> str:
    """Ask through Anthropic's SDK until the model calls no tool, and return what it says."""
    client = anthropic.Anthropic(base_url=url, api_key="sk-none", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": prompt}]
    offered: Any = [{"name": name, "input_schema": _SCHEMA} for name in tools]
    while True:
        answer = client.messages.create(
            model="claude-sonnet-5", max_tokens=100, messages=messages, tools=offered
        )
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        messages.append({"role": "assistant", "content": answer.content})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": str(tools[call.name](**dict(call.input))),
            }
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


async def aask_openai(url: str, prompt: str, tools: Tools) -> str:
    """Ask through OpenAI's async SDK with streamed answers; the tools are coroutines."""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    offered: Any = [{"type": "function", "function": {"name": name}} for name in tools]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-none") as client:
        while True:
            async with client.chat.completions.stream(
                model="gpt-5-mini", messages=messages, tools=offered
            ) as stream:
                said = (await stream.get_final_completion()).choices[0].message
            if not said.tool_calls:
                return said.content or ""
            messages.append(said.model_dump(exclude={"parsed"}, exclude_none=True))
            for call in said.tool_calls:
                arguments = json.loads(call.function.arguments)
                result: Any = await tools[call.function.name](**arguments)  # type: ignore[misc]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
