"""Tools that the provider runs are parts of its answer: no exchanges, and equal in a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework_openai import OpenAIChatClient

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery, json_delivery

Call = Callable[..., Any]

SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
OUTPUT: list[dict[str, Any]] = [
    {**SEARCHED, "action": {"type": "search", "query": "tea"}},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "print(6 * 7)",
        "container_id": "cntr_1",
        "outputs": [{"type": "logs", "logs": "42\n"}],
    },
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "docs",
        "name": "find",
        "arguments": '{"word": "tea"}',
        "output": "found",
        "status": "completed",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is 42.", "annotations": []}],
    },
]


class Hosting(ProviderServer):
    """Answers as OpenAI does when it has run the tools itself."""

    def answer(self, received: Any) -> Any:
        """Return the whole answer, or its events."""
        self._received.append(received)
        whole = {
            "id": f"resp_{len(self._received)}",
            "object": "response",
            "created_at": 1700000000 + len(self._received),
            "model": "gpt-5-mini",
            "status": "completed",
            "output": OUTPUT,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        if not received.json().get("stream"):
            return json_delivery(200, whole)
        begun = {**whole, "status": "in_progress", "output": []}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for number, item in enumerate(OUTPUT):
            place = {"output_index": number, "item": item}
            events.append({"type": "response.output_item.added", **place})
            events.append({"type": "response.output_item.done", **place})
        events.append({"type": "response.completed", "response": whole})
        numbered = [{"sequence_number": n, **event} for n, event in enumerate(events)]
        chunks = [_event(event) for event in numbered]
        return Delivery(200, [("content-type", "text/event-stream")], chunks, chunked=True)


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_provider_ran_is_in_its_answer(
    agent_at: Call, ask: Call, tape: Any, paths: Call, stream: bool
) -> None:
    """A web search, a run of code and a call of a hosted MCP server."""
    client = OpenAIChatClient
    hosted = [
        client.get_web_search_tool(),
        client.get_code_interpreter_tool(),
        client.get_mcp_tool(name="docs", url="https://docs.example/mcp"),
    ]

    def run() -> Any:
        return ask(agent_at(url)("helper", tools=hosted), stream=stream).to_dict()

    with Hosting() as server, tracefork.record(tape):
        url = f"{server.url}/v1"
        recorded = run()
    with tracefork.replay(tape, strict=True) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    kinds = {content["type"] for message in recorded["messages"] for content in message["contents"]}
    assert {"code_interpreter_tool_call", "mcp_server_tool_call"} <= kinds
    assert [tool["type"] for tool in server.requests[0].json()["tools"]] == [
        "web_search",
        "code_interpreter",
        "mcp",
    ]
    assert paths() == ["agent:helper ▸ model:gpt-5-mini"]
