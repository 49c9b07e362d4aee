"""Model requests in one neutral form for every wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Provider = Literal[
    "openai.chat",
    "openai.responses",
    "openai.embeddings",
    "anthropic",
    "gemini",
    "gemini.embeddings",
    "ollama",
    "bedrock.converse",
    "bedrock.invoke",
    "bedrock.agent",
]
Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; an `id` of None is replaced by one derived from the request."""

    name: str
    arguments: Mapping[str, object]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The agent's answer to a tool call."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent offers, with its JSON schema as sent."""

    name: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn; system turns are in `ModelRequest.system` instead."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A model call; `attempt` counts from 1 how often these exact bytes were received."""

    provider: Provider
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    stream: bool
    payload: Mapping[str, object]
    path: str = ""
    body: bytes = b""
    attempt: int = 1

    @property
    def last_user_text(self) -> str:
        """Return the text of the newest user turn, or an empty string."""
        return next((m.text for m in reversed(self.messages) if m.role == "user"), "")

    @property
    def since_user(self) -> tuple[Message, ...]:
        """Return the turns after the newest user turn: the tool calls and results in progress."""
        turns = 0
        for message in reversed(self.messages):
            if message.role == "user":
                break
            turns += 1
        return self.messages[len(self.messages) - turns :]

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """Return the tool results since the newest user turn, oldest first."""
        return tuple(result for turn in self.since_user for result in turn.tool_results)
