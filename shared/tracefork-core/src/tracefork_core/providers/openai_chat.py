"""Decode chat completions and embeddings of OpenAI, Azure and compatible servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracefork_core.providers.call import (
    GenericPart,
    Message,
    ModelCall,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    Usage,
    join_fragments,
)
from tracefork_core.providers.lenient import (
    Json,
    arguments,
    count,
    field,
    items,
    mapping,
    mappings,
    text,
    total,
)
from tracefork_core.providers.parts import (
    content_parts,
    failure,
    joined_text,
    parameters,
    tool_answer,
    tool_definitions,
    vector,
)
from tracefork_core.providers.remembered import remembered
from tracefork_core.providers.wire import Wire

_SHOWN = ("model", "messages", "tools", "functions", "stream")

_EMBEDDINGS_SHOWN = ("model", "input")


def decode_chat(wire: Wire, provider: str | None) -> ModelCall:
    """Read a chat completion, whole or streamed."""
    body = fold(wire.chunks) if wire.chunks else wire.body
    choices = mappings(body.get("choices"))
    reasons = (text(choice.get("finish_reason")) for choice in choices)
    return ModelCall(
        operation="chat",
        api="openai.chat_completions",
        provider=provider,
        request_model=wire.request_model,
        response_model=text(body.get("model")),
        response_id=text(body.get("id")),
        stream=wire.streamed,
        input=tuple(_message(message) for message in mappings(wire.request.get("messages"))),
        output=tuple(_answer(choice) for choice in choices),
        tools=tool_definitions(field(wire.request, "tools", "functions")),
        parameters=parameters(wire.request, _SHOWN),
        usage=chat_usage(body.get("usage")),
        finish_reasons=tuple(reason for reason in reasons if reason),
        service_tier=text(body.get("service_tier")),
        error=failure(wire.status, body),
    )


def chat_usage(usage: Json) -> Usage | None:
    """Read the usage object of chat completions and embeddings."""
    if not isinstance(usage, dict):
        return None
    prompt = count(usage.get("prompt_tokens"))
    completion = count(usage.get("completion_tokens"))
    read = mapping(usage.get("prompt_tokens_details"))
    written = mapping(usage.get("completion_tokens_details"))
    reasoning = count(written.get("reasoning_tokens"))
    # xAI's completion tokens leave out reasoning, which shows in the total.
    everything = total(prompt, completion, reasoning)
    if reasoning and completion is not None and everything == usage.get("total_tokens"):
        completion += reasoning
    cached = field(read, "cached_tokens")
    if cached is None:
        cached = field(usage, "prompt_cache_hit_tokens", "cached_tokens")
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        cache_read_input_tokens=count(cached),
        cache_creation_input_tokens=count(read.get("cache_write_tokens")),
        reasoning_output_tokens=reasoning,
        reported=usage,
    )


@remembered
def _message(message: dict[str, Json]) -> Message:
    role = text(message.get("role")) or "user"
    if role in ("tool", "function"):
        call = text(field(message, "tool_call_id", "name"))
        parts: tuple[Part, ...] = (ToolCallResponsePart(call, tool_answer(message.get("content"))),)
    else:
        parts = tuple(_parts(message))
    return Message(role, parts, text(message.get("name")))


def _answer(choice: dict[str, Json]) -> Message:
    message = mapping(choice.get("message"))
    return Message(text(message.get("role")) or "assistant", join_fragments(_parts(message)))


def _parts(message: dict[str, Json]) -> Iterator[Part]:
    if reasoning := joined_text(field(message, "reasoning_content", "reasoning")):
        yield ReasoningPart(reasoning)
    yield from content_parts(message.get("content"))
    if refusal := text(message.get("refusal")):
        yield GenericPart("refusal", refusal)
    if audio := mapping(message.get("audio")):
        yield GenericPart("audio", audio)
    for call in mappings(message.get("tool_calls")):
        yield _tool_call(text(call.get("id")), mapping(field(call, "function", "custom")))
    if legacy := mapping(message.get("function_call")):
        yield _tool_call(None, legacy)


def _tool_call(call_id: str | None, body: dict[str, Json]) -> ToolCallPart:
    name = text(body.get("name")) or ""
    return ToolCallPart(call_id, name, arguments(field(body, "arguments", "input")))


def fold(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Fold the chunks of a stream into the document of the whole answer."""
    body: dict[str, Json] = {}
    choices: dict[int, _Choice] = {}
    for chunk in chunks:
        # The first chunk of Azure has an empty id and model. Groq may put the usage in x_groq.
        for key in ("id", "created", "model", "service_tier", "system_fingerprint", "error"):
            body[key] = chunk.get(key) or body.get(key)
        usage = chunk.get("usage") or mapping(chunk.get("x_groq")).get("usage")
        body["usage"] = usage or body.get("usage")
        for choice in mappings(chunk.get("choices")):
            index = count(choice.get("index")) or 0
            choices.setdefault(index, _Choice()).add(choice)
    body["choices"] = [choices[index].whole() for index in sorted(choices)]
    return body


class _Choice:
    """Collect the deltas of one choice."""

    def __init__(self) -> None:
        self._role: Json = None
        self._finish_reason: Json = None
        self._content: list[Json] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _Call] = {}

    def add(self, choice: dict[str, Json]) -> None:
        delta = mapping(field(choice, "delta", "message"))
        self._role = delta.get("role") or self._role
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        content = delta.get("content")
        self._content += content if isinstance(content, list) else [content]
        self._reasoning.append(joined_text(field(delta, "reasoning_content", "reasoning")))
        self._refusal.append(text(delta.get("refusal")) or "")
        for call in mappings(delta.get("tool_calls")):
            self._call(call).add(call)
        if legacy := mapping(delta.get("function_call")):
            self._calls.setdefault(0, _Call()).add({"function": legacy})

    def _call(self, call: dict[str, Json]) -> _Call:
        index = count(call.get("index"))
        if index is None:
            # Some servers send no index, and each call whole with its own id.
            last = max(self._calls, default=-1)
            index = last + 1 if text(call.get("id")) or last < 0 else last
        return self._calls.setdefault(index, _Call())

    def whole(self) -> Json:
        message: dict[str, Json] = {
            "role": self._role,
            "content": self._content,
            "reasoning_content": "".join(self._reasoning),
            "refusal": "".join(self._refusal),
            "tool_calls": [self._calls[index].whole() for index in sorted(self._calls)],
        }
        return {"message": message, "finish_reason": self._finish_reason}


class _Call:
    """Collect the deltas of one tool call."""

    def __init__(self) -> None:
        self._id: Json = None
        self._name: Json = None
        self._fragments: list[str] = []
        self._arguments: Json = None

    def add(self, call: dict[str, Json]) -> None:
        body = mapping(field(call, "function", "custom"))
        self._id = self._id or call.get("id")
        self._name = self._name or body.get("name")
        fragment = field(body, "arguments", "input")
        if isinstance(fragment, str):
            self._fragments.append(fragment)
        else:
            self._arguments = fragment or self._arguments

    def whole(self) -> Json:
        written: Json = self._arguments or "".join(self._fragments)
        return {"id": self._id, "function": {"name": self._name, "arguments": written}}


def decode_embeddings(wire: Wire, provider: str | None) -> ModelCall:
    """Read a request for embeddings; each input and each vector becomes a message."""
    return ModelCall(
        operation="embeddings",
        api="openai.embeddings",
        provider=provider,
        request_model=wire.request_model,
        response_model=text(wire.body.get("model")),
        response_id=text(wire.body.get("id")),
        input=tuple(_embedded(entry) for entry in _inputs(wire.request.get("input"))),
        output=tuple(vector(entry.get("embedding")) for entry in mappings(wire.body.get("data"))),
        parameters=parameters(wire.request, _EMBEDDINGS_SHOWN),
        usage=chat_usage(wire.body.get("usage")),
        error=failure(wire.status, wire.body),
    )


def _inputs(value: Json) -> list[Json]:
    entries = items(value)
    # A flat list of token ids is one input.
    if isinstance(value, str) or (entries and isinstance(entries[0], int)):
        return [value]
    return entries


def _embedded(entry: Json) -> Message:
    if isinstance(entry, str):
        return Message("user", (TextPart(entry),))
    return Message("user", (GenericPart("tokens", entry),))
