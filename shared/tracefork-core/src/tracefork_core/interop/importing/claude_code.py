"""Read the messages of Claude Code: a session's log, or what the Claude Agent SDK received.

Both are JSON objects with a `type`, one for each piece of an answer: a message of the model may be
in several of them, under one id. They hold what was said, and no requests. So each call shows as
the question what was new since the model's last answer, as in the other logs.
"""

from __future__ import annotations

from tracefork_core.interop.importing.span_values import known, nanoseconds
from tracefork_core.interop.span import Span
from tracefork_core.providers.lenient import Json, count, items, mapping, mappings, text, total


def is_claude_code(document: Json) -> bool:
    """Return whether a document is a list of such messages, alone or under `messages`."""
    messages = _messages(document)
    return bool(messages) and any(
        message.get("type") == "assistant" and isinstance(message.get("message"), dict)
        for message in messages
    )


def read_claude_code(document: Json) -> list[Span]:
    """Return a span for each message of the model, and one for each tool that it called."""
    return _Session().read(_messages(document))


def _messages(document: Json) -> list[dict[str, Json]]:
    listed = document.get("messages") if isinstance(document, dict) else document
    # Recordings of both sides of the command line say which side each message is from.
    return [
        mapping(entry.get("message")) if "direction" in entry else entry
        for entry in mappings(listed)
    ]


class _Session:
    """One session on its way into spans. `_turns` are its model's messages by their ids."""

    def __init__(self) -> None:
        self._root = Span("session", "claude code")
        self._root.attributes = {"gen_ai.operation.name": "invoke_agent"}
        self._spans = [self._root]
        self._heard: list[Json] = []
        self._turns: dict[str, Span] = {}
        self._tools: dict[str, Span] = {}
        self._now = 0

    def read(self, messages: list[dict[str, Json]]) -> list[Span]:
        for entry in messages:
            self._now = nanoseconds(entry.get("timestamp")) or self._now + 1
            message = mapping(entry.get("message"))
            if entry.get("type") == "assistant":
                self._answer(message)
            elif entry.get("type") == "user":
                self._hear(message)
            elif entry.get("type") == "result" and entry.get("is_error") is True:
                self._root.error = text(entry.get("result")) or "error"
        self._root.started = min((span.started for span in self._spans[1:]), default=0)
        return self._spans

    def _answer(self, message: dict[str, Json]) -> None:
        """Take a piece of a message of the model, and the calls of tools in it."""
        name = text(message.get("id")) or f"turn-{len(self._spans)}"
        span = self._turns.get(name)
        if span is None:
            span = self._turns[name] = Span(name, "chat", parent="session", started=self._now)
            span.attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.input.messages": self._heard,
                "gen_ai.output.messages": [],
            }
            self._heard = []
            self._spans.append(span)
        written = items(span.attributes["gen_ai.output.messages"])
        before = items(mapping(written[0]).get("content")) if written else []
        content = _blocks(message.get("content"))
        said: Json = {"role": "assistant", "content": [*before, *content]}
        span.attributes |= {"gen_ai.output.messages": [said], **_counts(message)}
        span.ended = self._now
        for block in mappings(content):
            if block.get("type") == "tool_use":
                self._call(block)

    def _call(self, block: dict[str, Json]) -> None:
        name = text(block.get("id")) or f"tool-{len(self._spans)}"
        span = Span(name, "execute_tool", parent="session", started=self._now)
        span.attributes = known(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": block.get("name"),
                "gen_ai.tool.call.arguments": block.get("input"),
            }
        )
        self._tools[name] = span
        self._spans.append(span)

    def _hear(self, message: dict[str, Json]) -> None:
        """Take what the model hears next: words of the user, and results of its tools."""
        self._heard.append({"role": "user", "content": message.get("content")})
        for block in mappings(message.get("content")):
            span = self._tools.get(text(block.get("tool_use_id")) or "")
            if span is None:
                continue
            span.ended = self._now
            span.attributes["gen_ai.tool.call.result"] = block.get("content")
            if block.get("is_error") is True:
                span.error = "the tool returned an error"


def _blocks(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)


def _counts(message: dict[str, Json]) -> dict[str, Json]:
    """Return the model and its counts; the input includes what was read from the cache."""
    usage = mapping(message.get("usage"))
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    asked = [usage.get("input_tokens"), read, written]
    return known(
        {
            "gen_ai.request.model": message.get("model"),
            "gen_ai.response.id": message.get("id"),
            "gen_ai.response.finish_reasons": message.get("stop_reason"),
            "gen_ai.usage.input_tokens": total(*(count(each) for each in asked)),
            "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            "gen_ai.usage.cache_read.input_tokens": read,
            "gen_ai.usage.cache_creation.input_tokens": written,
        }
    )
