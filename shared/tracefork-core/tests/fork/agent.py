"""An agent that makes three calls, each with all earlier answers in its prompt."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai

from tracefork_testkit import ModelRequest, Reply

WAYS = ["sync", "stream", "async", "astream", "anthropic"]


class Moody:
    """Gives a different answer each time, and keeps the prompts it receives."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: ModelRequest) -> Reply:
        self.asked.append(request.last_user_text)
        return Reply(f"answer {len(self.asked)}")


def run(url: str, way: str = "sync") -> list[str]:
    """Make three calls and return the answers."""
    answers: list[str] = []
    for number in range(3):
        answers.append(ask(url, f"question {number} after {' and '.join(answers)}", way))
    return answers


def ask(url: str, text: str, way: str = "sync") -> str:
    messages: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    if way == "anthropic":
        with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as claude:
            said = claude.messages.create(model="m", max_tokens=9, messages=messages[1:])
            return str(said.content[0].text)
    if way.startswith("a"):
        return asyncio.run(ask_async(url, messages, way))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        if way == "sync":
            answer = client.chat.completions.create(model="m", messages=messages)
            return str(answer.choices[0].message.content)
        pieces = client.chat.completions.create(model="m", messages=messages, stream=True)
        return "".join(p.choices[0].delta.content or "" for p in pieces if p.choices)


async def ask_async(url: str, messages: Any, way: str) -> str:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        if way == "async":
            answer = await client.chat.completions.create(model="m", messages=messages)
            return str(answer.choices[0].message.content)
        pieces = await client.chat.completions.create(model="m", messages=messages, stream=True)
        return "".join([p.choices[0].delta.content or "" async for p in pieces if p.choices])
