"""The neutral view of one model call, named after the OpenTelemetry GenAI conventions.

Each field is the attribute `gen_ai.*` of the same name (`request_model` is
`gen_ai.request.model`, `usage.cache_read_input_tokens` is
`gen_ai.usage.cache_read.input_tokens`); the parts are those of `gen_ai.input.messages`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, TypeAlias

from tracefork_core.providers.lenient import Json


@dataclass(frozen=True, slots=True)
class TextPart:
    """Hold text sent to or written by the model."""

    content: str
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Hold the model's thinking; empty when the provider hid its text."""

    content: str
    type: Literal["reasoning"] = field(default="reasoning", init=False)


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """Hold a call the caller must run; `arguments` is text when it was not a JSON object."""

    id: str | None
    name: str
    arguments: Json
    type: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True)
class ToolCallResponsePart:
    """Hold what a tool answered, as it was put to the model."""

    id: str | None
    response: Json
    type: Literal["tool_call_response"] = field(default="tool_call_response", init=False)


@dataclass(frozen=True, slots=True)
class ServerToolCallPart:
    """Hold a call the provider ran itself, with the provider's own record of it."""

    id: str | None
    name: str
    server_tool_call: Json
    type: Literal["server_tool_call"] = field(default="server_tool_call", init=False)


@dataclass(frozen=True, slots=True)
class ServerToolCallResponsePart:
    """Hold what a tool run by the provider answered, as the provider recorded it."""

    id: str | None
    server_tool_call_response: Json
    type: Literal["server_tool_call_response"] = field(
        default="server_tool_call_response", init=False
    )


@dataclass(frozen=True, slots=True)
class BlobPart:
    """Hold an inline attachment; `content` is base64 as it was on the wire."""

    modality: str
    mime_type: str | None
    content: str
    type: Literal["blob"] = field(default="blob", init=False)


@dataclass(frozen=True, slots=True)
class UriPart:
    """Hold an attachment given by address."""

    modality: str
    mime_type: str | None
    uri: str
    type: Literal["uri"] = field(default="uri", init=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """Hold an attachment uploaded to the provider before."""

    modality: str
    mime_type: str | None
    file_id: str
    type: Literal["file"] = field(default="file", init=False)


@dataclass(frozen=True, slots=True)
class GenericPart:
    """Hold any other part under the provider's name for it (`refusal`, `embedding`…)."""

    type: str
    content: Json


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolCallPart
    | ToolCallResponsePart
    | ServerToolCallPart
    | ServerToolCallResponsePart
    | BlobPart
    | UriPart
    | FilePart
    | GenericPart
)


@dataclass(frozen=True, slots=True)
class Message:
    """Hold one message; the role is the provider's, with Gemini's `model` as `assistant`."""

    role: str
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Hold a tool offered to the model; `type` is `function` or the provider's built-in."""

    type: str
    name: str
    description: str | None = None
    parameters: Json = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Count tokens; None is not reported.

    Input includes tokens read from and written to the cache, output includes reasoning,
    whatever the provider's own arithmetic is; `reported` is the provider's object unchanged.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    reported: Json = None


@dataclass(frozen=True, slots=True)
class ModelError:
    """Hold what the provider said went wrong (`error.type` is its own word or the status)."""

    type: str
    message: str | None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Hold one call of a model: what was asked, what came back, what it used.

    `provider` is None behind a host nobody knows (a proxy, a local server); `api` always
    names the wire format. `system` holds instructions given apart from the history;
    `parameters` holds the rest of the request, sampling settings under their neutral names.
    """

    operation: str
    api: str
    provider: str | None
    request_model: str | None
    response_model: str | None = None
    response_id: str | None = None
    stream: bool = False
    system: tuple[Part, ...] = ()
    input: tuple[Message, ...] = ()
    output: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    parameters: dict[str, Json] = field(default_factory=dict)
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    service_tier: str | None = None
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """Join the text of the first choice."""
        return "".join(part.content for part in self._first if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """Give the tool calls of the first choice."""
        return tuple(part for part in self._first if isinstance(part, ToolCallPart))

    @property
    def _first(self) -> tuple[Part, ...]:
        return self.output[0].parts if self.output else ()


def join_fragments(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Merge neighbouring texts, and neighbouring reasonings: streams deliver them in pieces."""
    joined: list[Part] = []
    for kind, run in groupby(parts, key=type):
        group = list(run)
        content = "".join(p.content for p in group if isinstance(p, TextPart | ReasoningPart))
        if kind is TextPart:
            joined.append(TextPart(content))
        elif kind is ReasoningPart:
            joined.append(ReasoningPart(content))
        else:
            joined.extend(group)
    return tuple(joined)
