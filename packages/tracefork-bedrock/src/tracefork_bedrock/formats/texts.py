"""Read and answer models that continue a text: Titan, Llama, Mistral, Command, Claude 2, Jurassic.

InvokeModel passes bodies on, and each maker has its own. They differ in the names of the fields, so
a table says where a text, the reason for its end and the token counts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tracefork_bedrock.formats.reading import Dialect, pieces, settings, tokens
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    BlobPart,
    Carried,
    Json,
    Message,
    ModelCall,
    Part,
    TextPart,
    Usage,
    Wanted,
    set_values,
)
from tracefork_core.adapters.formats import lenient as le

API = "bedrock.text"
_PROMPTS = ("prompt", "inputText")
Where: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class _Fields:
    """Where the parts of an answer are; () where the answer has no such part."""

    text: Where
    stop: Where
    entered: Where = ()
    left: Where = ()


@dataclass(frozen=True, slots=True)
class _Shape:
    """The bodies of one maker: a whole answer, an event of a stream, and how an answer ends."""

    makers: tuple[str, ...]
    whole: _Fields
    event: _Fields
    end: str


_TITAN = _Fields(
    ("results", 0, "outputText"),
    ("results", 0, "completionReason"),
    ("inputTextTokenCount",),
    ("results", 0, "tokenCount"),
)
_TITAN_EVENT = _Fields(
    ("outputText",), ("completionReason",), ("inputTextTokenCount",), ("totalOutputTextTokenCount",)
)
_LLAMA = _Fields(
    ("generation",), ("stop_reason",), ("prompt_token_count",), ("generation_token_count",)
)
_MISTRAL = _Fields(("outputs", 0, "text"), ("outputs", 0, "stop_reason"))
_COMMAND = _Fields(("generations", 0, "text"), ("generations", 0, "finish_reason"))
_CLAUDE = _Fields(("completion",), ("stop_reason",))
_JURASSIC = _Fields(
    ("completions", 0, "data", "text"), ("completions", 0, "finishReason", "reason")
)
_CHOICES = _Fields(("choices", 0, "text"), ("choices", 0, "stop_reason"))
_SHAPES = (
    _Shape(("titan",), _TITAN, _TITAN_EVENT, "FINISH"),
    _Shape(("llama",), _LLAMA, _LLAMA, "stop"),
    _Shape(("mistral", "mixtral"), _MISTRAL, _MISTRAL, "stop"),
    _Shape(("cohere",), _COMMAND, _Fields(("text",), ("finish_reason",)), "COMPLETE"),
    _Shape(("claude",), _CLAUDE, _CLAUDE, "stop_sequence"),
    _Shape(("ai21",), _JURASSIC, _JURASSIC, "endoftext"),
    _Shape(("deepseek",), _CHOICES, _CHOICES, "stop"),
)


def read(carried: Carried, model: str) -> ModelCall:
    """Read a prompt, and the text that continues it."""
    prompt = le.text(le.field(carried.request, *_PROMPTS))
    shape = _shape(carried, model)
    reasons = dict.fromkeys(_reasons(carried, shape)) if shape else {}
    output = [_said(text) for text in _texts(carried, shape)] if shape else []
    images = tuple(_images(carried.body))
    return ModelCall(
        operation="text_completion",
        api=API,
        provider=None,
        request_model=model,
        stream=carried.streams,
        input=(Message("user", (TextPart(prompt),)),) if prompt else (),
        output=(*output, Message("assistant", images)) if images else tuple(output),
        parameters=settings(carried.request, _PROMPTS),
        usage=_usage(carried, shape) if shape else None,
        finish_reasons=tuple(reasons),
    )


def answer(carried: Carried, wanted: Wanted, model: str) -> dict[str, Json]:
    """Return another text as the answer.

    Raises:
        UsageError: the model calls no tools, or it is not known how it answers.
    """
    if wanted.tool_calls or wanted.text is None:
        raise UsageError("this model continues a text and calls no tools. Give a text")
    shape = _shape(carried, model)
    if shape is None:
        raise UsageError(f"it is not known how {model} answers. Give the whole answer as JSON")
    document = le.mapping(le.parse(le.compact(carried.body)))
    _put(document, shape.whole.text, wanted.text)
    _put(document, shape.whole.stop, shape.end)
    if shape.whole.entered:
        prompt = le.text(le.field(carried.request, *_PROMPTS)) or ""
        usage = _usage(carried, shape)
        entered = usage.input_tokens if usage else None
        _put(document, shape.whole.entered, tokens(prompt) if entered is None else entered)
        _put(document, shape.whole.left, tokens(wanted.text))
    return document


def events(carried: Carried, document: dict[str, Json]) -> list[dict[str, Json]]:
    """Return a whole answer as the events of a stream.

    Raises:
        UsageError: it is not known how the model answers.
    """
    found = [shape for shape in _SHAPES if isinstance(_at(document, shape.whole.text), str)]
    if not found:
        raise UsageError("this answer has no text that could be streamed")
    shape = found[0]
    said = list(pieces(str(_at(document, shape.whole.text)))) or [""]
    made: list[dict[str, Json]] = []
    for index, piece in enumerate(said):
        event: dict[str, Json] = {}
        is_last = index + 1 == len(said)
        _put(event, shape.event.text, piece)
        _put(event, shape.event.stop, _at(document, shape.whole.stop) if is_last else None)
        if index == 0:
            _copy(document, shape.whole.entered, event, shape.event.entered)
        if is_last:
            _copy(document, shape.whole.left, event, shape.event.left)
        made.append(event)
    return made


def change(carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return the request with changes.

    Raises:
        UsageError: the request has no such part.
    """
    body = le.mapping(le.parse(le.compact(carried.request)))
    for name in ("system", "drop_message", "tools"):
        if name in changes:
            raise UsageError(f"this model continues a text: it has no {name!r} to change")
    if "prompt" in changes:
        body["prompt" if "prompt" in body else "inputText"] = changes["prompt"]
    if "temperature" in changes:
        group = body.get("textGenerationConfig")
        holder = group if isinstance(group, dict) else body
        holder["temperature"] = changes["temperature"]
    set_values(body, changes.get("values", {}))
    return body


def _shape(carried: Carried, model: str) -> _Shape | None:
    """Return the shape of an answer; before there is one, that of the model's maker."""
    for shape in _SHAPES:
        for fields, answers in ((shape.event, carried.events), (shape.whole, (carried.body,))):
            if any(isinstance(_at(one, fields.text), str) for one in answers):
                return shape
    name = model.lower()
    return next((shape for shape in _SHAPES if any(maker in name for maker in shape.makers)), None)


def _texts(carried: Carried, shape: _Shape) -> list[str]:
    if carried.events:
        found = [_at(event, shape.event.text) for event in carried.events]
        return ["".join(piece for piece in found if isinstance(piece, str))]
    return [str(text) for text in _each(carried.body, shape.whole.text) if isinstance(text, str)]


def _reasons(carried: Carried, shape: _Shape) -> Iterator[str]:
    for event in carried.events:
        if reason := le.text(_at(event, shape.event.stop)):
            yield reason
    for stated in _each(carried.body, shape.whole.stop):
        if isinstance(stated, str):
            yield stated


def _usage(carried: Carried, shape: _Shape) -> Usage | None:
    answers = carried.events or (carried.body,)
    fields = shape.event if carried.events else shape.whole
    entered, left = (
        max((n for one in answers if (n := le.count(_at(one, where))) is not None), default=None)
        for where in (fields.entered, fields.left)
    )
    if entered is None and left is None:
        return None
    return Usage(entered, left, reported={"inputTokens": entered, "outputTokens": left})


def _said(text: str) -> Message:
    return Message("assistant", (TextPart(text),))


def _images(body: dict[str, Json]) -> Iterator[Part]:
    for image in le.items(body.get("images")):
        if isinstance(image, str):
            yield BlobPart("image", "image/png", image)


def _each(document: Json, where: Where) -> Iterator[Json]:
    """Yield the values at a place, in each element of the list that it leads through."""
    if len(where) > 1 and where[1] == 0:
        for element in le.items(le.mapping(document).get(str(where[0]))):
            yield _at(element, where[2:])
    elif where:
        yield _at(document, where)


def _at(document: Json, where: Where) -> Json:
    if not where:
        return None
    value = document
    for step in where:
        if isinstance(step, int):
            listed = le.items(value)
            value = listed[step] if step < len(listed) else None
        else:
            value = le.mapping(value).get(step)
    return value


def _put(document: dict[str, Json], where: Where, value: Json) -> None:
    if not where:
        return
    key, *rest = where
    if not rest:
        document[str(key)] = value
    elif rest[0] == 0:
        elements = le.mappings(document.get(str(key)))
        first = elements[0] if elements else {}
        _put(first, tuple(rest[1:]), value)
        document[str(key)] = [first]
    else:
        inner = le.mapping(document.get(str(key)))
        _put(inner, tuple(rest), value)
        document[str(key)] = inner


def _copy(document: Json, source: Where, event: dict[str, Json], target: Where) -> None:
    if (value := _at(document, source)) is not None:
        _put(event, target, value)


TEXTS = Dialect("", read, answer, events, change)
