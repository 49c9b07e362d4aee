"""Tapes with calls in the wire formats of providers, for tests of exports."""

from __future__ import annotations

import json
from pathlib import Path

from tracefork_core.exchange.contract import AFTER, Failure, Head, Request
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, ForeignStep
from tracefork_core.interop.importing.recording import write

SECOND = 1_000_000_000
BEGAN = 1_700_000_000 * SECOND
SAID = "the parcel 4711 is lost"
"""Words of the conversation, which an export without content must not have."""

_JSON = (("Content-Type", "application/json"),)
_IMAGE = "iVBORw0KGgo="
_TOOL = {"type": "object", "properties": {"id": {"type": "string"}}}


def _sent(url: str, asked: object, answered: object, at: int, step: str | None) -> ForeignExchange:
    return ForeignExchange(
        Request("POST", url, _JSON, json.dumps(asked).encode(), "httpx"),
        Head(200, "OK", _JSON),
        (json.dumps(answered).encode(),),
        started=BEGAN + at * SECOND,
        first_byte=SECOND // 2,
        took=SECOND,
        step=step,
    )


def openai_chat(at: int = 0, step: str | None = None) -> ForeignExchange:
    """Return a chat with an image, a tool call and its result, a refusal, and settings."""
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id":"1"}'}}
    asked = {
        "model": "gpt-5-mini",
        "temperature": 0.5,
        "top_p": 1,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": SAID},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                    {"type": "file", "file": {"file_id": "file_1"}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "not found"},
        ],
        "tools": [{"type": "function", "function": {"name": "find", "parameters": _TOOL}}],
    }
    answered = {
        "id": "chatcmpl-1",
        "model": "gpt-5-mini-2025-08-07",
        "choices": [
            {
                "message": {"role": "assistant", "content": "Gone.", "refusal": "No more."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }
    return _sent("https://api.openai.com/v1/chat/completions", asked, answered, at, step)


def anthropic(at: int = 1, step: str | None = None) -> ForeignExchange:
    """Return a message with reasoning, a tool call, and a tool that the provider ran."""
    asked = {
        "model": "claude-5",
        "max_tokens": 99,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": SAID}],
        "tools": [{"name": "find", "description": "Find it.", "input_schema": _TOOL}],
    }
    answered = {
        "id": "msg_1",
        "model": "claude-5",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Where is it?", "signature": "s"},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s1",
                "content": [{"type": "web_search_result", "url": "https://example.com"}],
            },
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "find", "input": {"id": "4711"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 2},
    }
    return _sent("https://api.anthropic.com/v1/messages", asked, answered, at, step)


def gemini(at: int = 2, step: str | None = None) -> ForeignExchange:
    """Return a call of Gemini with the result of a tool."""
    host = "https://generativelanguage.googleapis.com"
    asked = {
        "contents": [
            {"role": "user", "parts": [{"text": SAID}]},
            {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"id": "1"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "find", "response": {"found": False}}}],
            },
        ],
        "generationConfig": {"topK": 40, "maxOutputTokens": 9},
    }
    answered = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "No."}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1},
    }
    url = f"{host}/v1beta/models/gemini-3-flash:generateContent"
    return _sent(url, asked, answered, at, step)


def tool(at: int = 3, step: str | None = None) -> ForeignExchange:
    """Return a call of a function that was made a tool."""
    return ForeignExchange(
        Request("CALL", "tool:find", (), json.dumps({"id": SAID}).encode(), "tool"),
        Head(200, "OK", ()),
        (json.dumps({"place": SAID}).encode(),),
        started=BEGAN + at * SECOND,
        took=SECOND,
        step=step,
    )


def lookup(at: int = 4, step: str | None = None) -> ForeignExchange:
    """Return a request that asks neither a model nor a tool, and fails."""
    return ForeignExchange(
        Request(
            "GET",
            f"https://api.example.com/v1/parcels?q={SAID.replace(' ', '+')}",
            (),
            b"",
            "httpx",
        ),
        failure=Failure("ConnectTimeout", f"no answer about: {SAID}"),
        started=BEGAN + at * SECOND,
        took=SECOND,
        step=step,
    )


def run(folder: Path) -> Path:
    """Write a tape with all of these, in the steps of two agents and a join."""
    steps = [
        ForeignStep("desk", "agent", "desk", None, BEGAN, BEGAN + 6 * SECOND),
        ForeignStep("ask", "node", "ask", "desk", BEGAN, BEGAN + 2 * SECOND),
        ForeignStep("look", "node", "look", "desk", BEGAN + SECOND, BEGAN + 4 * SECOND),
        ForeignStep(
            "join",
            "node",
            "join",
            "desk",
            BEGAN + 4 * SECOND,
            BEGAN + 5 * SECOND,
            f"ValueError: {SAID}",
            {AFTER: ["ask", "look"]},
        ),
    ]
    exchanges = [
        openai_chat(0, "ask"),
        anthropic(1, "look"),
        gemini(2, "look"),
        tool(3, "look"),
        lookup(4, "join"),
    ]
    target = folder / "run.tape"
    write(ForeignRun("test", exchanges, steps), Path("run.json"), b"{}", target)
    return target
