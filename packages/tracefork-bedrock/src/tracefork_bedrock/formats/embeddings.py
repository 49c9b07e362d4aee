"""Read embeddings of Titan, Cohere and Nova, and models whose bodies have no form of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracefork_bedrock.formats.reading import Dialect, attachment, metrics_of, settings, usage_of
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    BlobPart,
    Carried,
    GenericPart,
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

_SHOWN = ("inputText", "inputImage", "texts", "images", "inputs")
_PARAMS = ("singleEmbeddingParams", "segmentedEmbeddingParams")


def is_embedding(request: dict[str, Json], model: str) -> bool:
    """Return whether a request asks for embeddings."""
    kind = le.text(request.get("taskType")) or ""
    if "embed" in model.lower() or kind.endswith("EMBEDDING"):
        return True
    return "input_type" in request and not request.keys().isdisjoint(("texts", "images", "inputs"))


def read(carried: Carried, model: str) -> ModelCall:
    """Read what is to be embedded, and the vectors."""
    counted = le.count(carried.body.get("inputTextTokenCount"))
    return ModelCall(
        operation="embeddings",
        api="bedrock.embeddings",
        provider=None,
        request_model=model,
        response_id=le.text(carried.body.get("id")),
        input=tuple(Message("user", (part,)) for part in _inputs(carried.request)),
        output=tuple(
            Message("assistant", (GenericPart("embedding", vector),))
            for vector in _vectors(le.field(carried.body, "embeddings", "embedding"))
        ),
        parameters=settings(carried.request, _SHOWN),
        usage=None if counted is None else Usage(counted, reported={"inputTokens": counted}),
    )


def _inputs(request: dict[str, Json]) -> Iterator[Part]:
    for text in (request.get("inputText"), *le.items(request.get("texts"))):
        if isinstance(text, str):
            yield TextPart(text)
    for image in (request.get("inputImage"), *le.items(request.get("images"))):
        if isinstance(image, str):
            yield BlobPart("image", None, image)
    for group in _PARAMS:
        for kind, value in le.mapping(request.get(group)).items():
            stated = le.mapping(value)
            if kind == "text":
                yield TextPart(le.text(stated.get("value")) or "")
            elif "source" in stated:
                yield attachment(kind, stated)


def _vectors(stated: Json) -> Iterator[Json]:
    """Yield the vectors of an answer: a list of numbers, of lists, of objects, or by type."""
    if isinstance(stated, dict):
        for listed in stated.values():
            yield from _vectors(listed)
        return
    listed = le.items(stated)
    if listed and not isinstance(listed[0], list | dict | str):
        yield listed
        return
    for vector in listed:
        yield le.mapping(vector).get("embedding") if isinstance(vector, dict) else vector


def read_any(carried: Carried, model: str) -> ModelCall:
    """Read a body of unknown form: it is shown as it is."""
    said: Json = [*carried.events] if carried.events else carried.body
    return ModelCall(
        operation="generate_content",
        api="bedrock.invoke",
        provider=None,
        request_model=model,
        stream=carried.streams,
        input=(Message("user", (GenericPart("request", carried.request),)),),
        output=(Message("assistant", (GenericPart("response", said),)),) if said else (),
        usage=usage_of(metrics_of(carried.events)),
    )


def _refuse(carried: Carried, wanted: Wanted, model: str) -> dict[str, Json]:
    raise UsageError(f"{model} is not asked for a text. Give the whole answer as JSON (--replace)")


def _no_events(carried: Carried, document: dict[str, Json]) -> list[dict[str, Json]]:
    return [document]


def change(carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return the request with other values.

    Raises:
        UsageError: something else is to change.
    """
    body = le.mapping(le.parse(le.compact(carried.request)))
    if given := [name for name in changes if name not in ("model", "values")]:
        raise UsageError(f"this request has no {given[0]!r}. Change a value: --set /NAME=VALUE")
    set_values(body, changes.get("values", {}))
    return body


EMBEDDINGS = Dialect("", read, _refuse, _no_events, change)
ANY = Dialect("", read_any, _refuse, _no_events, change)
