"""Run the tests that every adapter must pass, with an agent of its own loop on boto3's Converse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import boto3
import pytest
from botocore.config import Config

import tracefork_core as tracefork
from tracefork_core.adapters import step
from tracefork_testkit.conformance import API_KEY, AdapterConformance

TOOLS: Any = {
    "tools": [{"toolSpec": {"name": "lookup", "inputSchema": {"json": {"type": "object"}}}}]
}
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 3})


class Agent:
    """Asks a model, and calls its tool until the model calls none."""

    def __init__(self, url: str, lookup: Callable[[], str]) -> None:
        self.client: Any = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id=API_KEY,
            aws_secret_access_key="secret of the conformance",
            config=ONCE,
        )
        self.lookup = tracefork.tool(lookup)

    def run(self, question: str, *, stream: bool) -> str:
        messages: Any = [{"role": "user", "content": [{"text": question}]}]
        with step("agent", "Helper"):
            while True:
                blocks = self.ask(messages, stream=stream)
                uses = [block["toolUse"] for block in blocks if "toolUse" in block]
                if not uses:
                    return "".join(block.get("text", "") for block in blocks)
                messages.append({"role": "assistant", "content": blocks})
                results = [self.use(use) for use in uses]
                messages.append({"role": "user", "content": results})

    def use(self, use: Any) -> Any:
        with step("tool", use["name"]):
            found = self.lookup(**use["input"])
        return {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": found}]}}

    def ask(self, messages: Any, *, stream: bool) -> list[Any]:
        """Return the blocks of an answer."""
        asked = {"modelId": "a.model-v1:0", "messages": messages, "toolConfig": TOOLS}
        with step("model", "a.model"):
            if not stream:
                blocks: list[Any] = self.client.converse(**asked)["output"]["message"]["content"]
                return blocks
            return joined(self.client.converse_stream(**asked)["stream"])


def joined(events: Any) -> list[Any]:
    """Return the blocks that the events of a stream make."""
    blocks: dict[int, Any] = {}
    for event in events:
        if start := event.get("contentBlockStart"):
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"]}}
        elif delta := event.get("contentBlockDelta"):
            block = blocks.setdefault(delta["contentBlockIndex"], {"text": ""})
            if "text" in delta["delta"]:
                block["text"] += delta["delta"]["text"]
            else:
                use = block["toolUse"]
                use["input"] = use.get("input", "") + delta["delta"]["toolUse"]["input"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"].get("input") or "{}")
    return list(blocks.values())


class TestConformance(AdapterConformance):
    """In async modes the agent runs in a thread, as frameworks on boto3 do."""

    adapter = "bedrock"
    selectors: ClassVar = {"agent:Helper": 0}

    @pytest.fixture(autouse=True)
    def _closed_at_the_end(self) -> Iterator[None]:
        self.agents: list[Agent] = []
        yield
        for agent in self.agents:
            agent.client.close()

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent:
        self.agents.append(Agent(url, lookup))
        return self.agents[-1]

    def attach(self, agent: Agent) -> Agent:
        return agent

    def run(self, agent: Agent, question: str, mode: str) -> str:
        def work() -> str:
            return agent.run(question, stream="stream" in mode)

        if "async" not in mode:
            return work()
        return asyncio.run(asyncio.to_thread(work))
