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
    """Text sent to or written by the model."""

    content: str
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """The model's thinking; empty if the provider hides its text."""

    content: str
    type: Literal["reasoning"] = field(default="reasoning", init=False)


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A tool call that the caller must run; `arguments` is text if it is not a JSON object."""

    id: str | None
    name: str
    arguments: Json
    type: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True)
class ToolCallResponsePart:
    """The result of a tool, as the caller sent it to the model."""

    id: str | None
    response: Json
    type: Literal["tool_call_response"] = field(default="tool_call_response", init=False)


@dataclass(frozen=True, slots=True)
class ServerToolCallPart:
    """A tool call that the provider ran itself, with the provider's record of it."""

    id: str | None
    name: str
    server_tool_call: Json
    type: Literal["server_tool_call"] = field(default="server_tool_call", init=False)


@dataclass(frozen=True, slots=True)
class ServerToolCallResponsePart:
    """The result of a tool that the provider ran, as the provider reported it."""

    id: str | None
    server_tool_call_response: Json
    type: Literal["server_tool_call_response"] = field(
        default="server_tool_call_response", init=False
    )


@dataclass(frozen=True, slots=True)
class BlobPart:
    """An inline attachment; `content` is base64, as on the wire."""

    modality: str
    mime_type: str | None
    content: str
    type: Literal["blob"] = field(default="blob", init=False)


@dataclass(frozen=True, slots=True)
class UriPart:
    """An attachment given by its URI."""

    modality: str
    mime_type: str | None
    uri: str
    type: Literal["uri"] = field(default="uri", init=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """An attachment that was uploaded to the provider before the call."""

    modality: str
    mime_type: str | None
    file_id: str
    type: Literal["file"] = field(default="file", init=False)


@dataclass(frozen=True, slots=True)
class GenericPart:
    """Any other part, under the provider's name for it (`refusal`, `embedding`…)."""

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
    """A message; the role is the provider's, except that Gemini's `model` is `assistant`."""

    role: str
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model; `type` is `function` or the name of a built-in tool."""

    type: str
    name: str
    description: str | None = None
    parameters: Json = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts; None means not reported.

    Input includes tokens read from and written to the cache, and output includes reasoning, even
    if the provider counts them apart. `reported` is the provider's usage object, unchanged.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    reported: Json = None


@dataclass(frozen=True, slots=True)
class ModelError:
    """An error of the provider; `type` is the provider's word for it, or the HTTP status."""

    type: str
    message: str | None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call: its request, its answer and its usage.

    `provider` is None if the host is unknown (a proxy, a local server). `api` always names the wire
    format. `system` holds instructions given outside the message history. `parameters` holds the
    rest of the request; settings that formats share have their neutral names.
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
        """The text of the first choice."""
        return "".join(part.content for part in self._first if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The tool calls of the first choice."""
        return tuple(part for part in self._first if isinstance(part, ToolCallPart))

    @property
    def _first(self) -> tuple[Part, ...]:
        return self.output[0].parts if self.output else ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool that is an exchange of an adapter's own seam.

    `place` says where the tool is ("github"), for people. `result` is what the caller reads from
    the answer, a text if it is one; None if there is no answer.
    """

    name: str
    arguments: Json
    place: str | None = None
    result: Json = None
    is_error: bool = False


def join_fragments(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Merge adjacent text parts, and adjacent reasoning parts: streams deliver them in pieces."""
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
