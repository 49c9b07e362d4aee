"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import openai
import pytest
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from tracefork_core.adapters import step
from tracefork_testkit.conformance import API_KEY, AdapterConformance

from .serving import Served

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    MCPServer = None
TOOLS: Any = [
    {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
]


def serving(lookup: Callable[[], str]) -> Served:
    """Serve the tool. The server is stateless: a call needs no handshake."""
    if MCPServer is not None:
        server = MCPServer("desk")
        server.tool("lookup")(lookup)
        return Served(server.streamable_http_app(stateless_http=True, json_response=True))
    from mcp.server.fastmcp import FastMCP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        older = FastMCP("desk", stateless_http=True, json_response=True)
    older.tool("lookup")(lookup)
    return Served(older.streamable_http_app())


class Agent:
    """Asks a model, and calls tools of an MCP server."""

    def __init__(self, url: str, tools: Served) -> None:
        self.model = f"{url}/v1"
        self.tools = f"{tools.url}/mcp"

    async def run(self, question: str, *, stream: bool) -> str:
        """Run until the model calls no tool."""
        messages: Any = [{"role": "user", "content": question}]
        with step("agent", "Helper"):
            async with openai.AsyncOpenAI(base_url=self.model, api_key=API_KEY) as client:
                while True:
                    text, calls = await self.ask(client, messages, stream=stream)
                    if not calls:
                        return text
                    asked = [self.as_call(number, call) for number, call in calls.items()]
                    messages.append({"role": "assistant", "content": None, "tool_calls": asked})
                    for call in asked:
                        said = await self.call(call["function"])
                        messages.append(
                            {"role": "tool", "tool_call_id": call["id"], "content": said}
                        )

    async def ask(self, client: Any, messages: Any, *, stream: bool) -> tuple[str, dict[int, Any]]:
        """Ask the model, and return its text and its calls."""
        text = ""
        calls: dict[int, Any] = {}
        with step("model", "gpt"):
            answer = await client.chat.completions.create(
                model="gpt", messages=messages, tools=TOOLS, stream=stream
            )
            if not stream:
                message = answer.choices[0].message
                return message.content or "", dict(enumerate(message.tool_calls or ()))
            async for chunk in answer:
                delta = chunk.choices[0].delta if chunk.choices else None
                text += (delta.content or "") if delta else ""
                for part in (delta.tool_calls or ()) if delta else ():
                    known = calls.setdefault(part.index, part)
                    if known is not part:
                        known.function.arguments += part.function.arguments or ""
        return text, calls

    def as_call(self, number: int, call: Any) -> Any:
        function = {"name": call.function.name, "arguments": call.function.arguments}
        return {"id": f"call-{number}", "type": "function", "function": function}

    async def call(self, function: Any) -> str:
        """Call a tool. `call_tool` would list the tools after that, so send the request itself."""
        arguments = json.loads(function["arguments"] or "{}")
        params = types.CallToolRequestParams(name=function["name"], arguments=arguments)
        request: Any = types.CallToolRequest(method="tools/call", params=params)
        if MCPServer is None:
            request = types.ClientRequest(request)
        async with (
            streamable_http_client(self.tools) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            result = await session.send_request(request, types.CallToolResult)
        return str(result.content[0].text)


class TestConformance(AdapterConformance):
    """An agent of its own loop, whose tools are those of an MCP server."""

    adapter = "mcp"
    tool_seam = "mcp"
    selectors: ClassVar = {"agent:Helper": 0}

    @pytest.fixture(autouse=True)
    def _stopped_at_the_end(self) -> Iterator[None]:
        self.servers: list[Served] = []
        yield
        for server in self.servers:
            server.stop()

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent:
        self.servers.append(serving(lookup))
        return Agent(url, self.servers[-1])

    def attach(self, agent: Agent) -> Agent:
        return agent

    def run(self, agent: Agent, question: str, mode: str) -> str:
        return asyncio.run(agent.run(question, stream="stream" in mode))
