"""A framework of agents, in place of yours: a model that is asked in turns, and its tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI, OpenAI

__version__ = "1.0"


class Agent:
    """Asks a model until it calls no more tools."""

    def __init__(
        self, name: str, *, url: str, key: str, tools: tuple[Callable[..., str], ...] = ()
    ) -> None:
        self.name = name
        self.client = OpenAI(base_url=url, api_key=key)
        self.async_client = AsyncOpenAI(base_url=url, api_key=key)
        self.tools = {tool.__name__: tool for tool in tools}

    def run(self, question: str, *, stream: bool = False) -> str:
        """Return the answer to a question."""
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            said = self._ask(messages, stream=stream)
            messages.append(_as_message(said))
            if not said.tool_calls:
                return said.content or ""
            messages += map(self._answered, said.tool_calls)

    async def arun(self, question: str, *, stream: bool = False) -> str:
        """Do the same in async code."""
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            said = await self._aask(messages, stream=stream)
            messages.append(_as_message(said))
            if not said.tool_calls:
                return said.content or ""
            messages += map(self._answered, said.tool_calls)

    def _ask(self, messages: list[Any], *, stream: bool) -> Any:
        asked = self._asked(messages)
        if stream:
            with self.client.chat.completions.stream(**asked) as events:
                return events.get_final_completion().choices[0].message
        return self.client.chat.completions.create(**asked).choices[0].message

    async def _aask(self, messages: list[Any], *, stream: bool) -> Any:
        asked = self._asked(messages)
        if stream:
            async with self.async_client.chat.completions.stream(**asked) as events:
                return (await events.get_final_completion()).choices[0].message
        return (await self.async_client.chat.completions.create(**asked)).choices[0].message

    def _asked(self, messages: list[Any]) -> dict[str, Any]:
        tools = [_described(tool) for tool in self.tools.values()]
        return {"model": "some-model", "messages": messages, "tools": tools}

    def _answered(self, call: Any) -> dict[str, Any]:
        result = self._use(call.function.name, json.loads(call.function.arguments))
        return {"role": "tool", "tool_call_id": call.id, "content": result}

    def _use(self, name: str, arguments: dict[str, Any]) -> str:
        return self.tools[name](**arguments)


def _described(tool: Callable[..., str]) -> dict[str, Any]:
    names = list(inspect.signature(tool).parameters)
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    described = {
        "name": tool.__name__,
        "description": tool.__doc__ or "",
        "parameters": parameters,
        "strict": True,
    }
    return {"type": "function", "function": described}


def _as_message(said: Any) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in said.tool_calls or ()
    ]
    message = {"role": "assistant", "content": said.content}
    return {**message, "tool_calls": calls} if calls else message
