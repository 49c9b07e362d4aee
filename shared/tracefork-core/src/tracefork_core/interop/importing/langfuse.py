"""Read traces that Langfuse exported: a trace and its observations, or what its tests keep.

An observation has the attributes of the span that it was made from in its metadata, without the
messages, which Langfuse moved to `input` and `output`.
"""

from __future__ import annotations

from tracefork_core.interop.importing.messages import decoded
from tracefork_core.interop.importing.span_values import known, nanoseconds
from tracefork_core.interop.span import Span
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text

_USAGE = {
    "gen_ai.usage.input_tokens": ("input", "input_tokens", "prompt_tokens", "promptTokens"),
    "gen_ai.usage.output_tokens": ("output", "output_tokens", "completion_tokens"),
    "gen_ai.usage.cache_read.input_tokens": ("input_cached_tokens", "cache_read_input_tokens"),
    "gen_ai.usage.reasoning.output_tokens": ("output_reasoning_tokens", "reasoning_tokens"),
}


def is_langfuse(document: Json) -> bool:
    """Return whether a document is a trace with observations, or a list of observations."""
    observations = _observations(document)
    return bool(observations) and "type" in observations[0] and "startTime" in observations[0]


def read_langfuse(document: Json) -> list[Span]:
    """Return the observations as spans."""
    return [_span(each) for each in _observations(document)]


def is_chatml(document: Json) -> bool:
    """Return whether a document maps ids of observations to their messages."""
    values = list(mapping(document).values())
    return bool(values) and all(
        isinstance(each, dict) and each.keys() <= {"input", "output"} and each for each in values
    )


def read_chatml(document: Json) -> list[Span]:
    """Return a model call for each id; messages that Langfuse could not read are left out."""
    spans = []
    for n, (name, each) in enumerate(mapping(document).items()):
        span = Span(name, name, started=n)
        span.attributes["gen_ai.operation.name"] = "chat"
        for side, attribute in (("input", "gen_ai.input.messages"), ("output", "gen_ai.output")):
            read = mapping(mapping(each).get(side))
            if read.get("success") is True:
                span.attributes[attribute] = read.get("data")
        spans.append(span)
    return spans


def _observations(document: Json) -> list[dict[str, Json]]:
    if isinstance(document, list):
        return mappings(document)
    whole = mapping(document)
    return mappings(field(whole, "observations") or mapping(whole.get("trace")).get("observations"))


def _span(observation: dict[str, Json]) -> Span:
    metadata = mapping(decoded(observation.get("metadata")))
    attributes = dict(mapping(decoded(metadata.get("attributes"))) or metadata)
    given: dict[str, Json] = {
        "langfuse.observation.type": observation.get("type"),
        "langfuse.observation.input": decoded(observation.get("input")),
        "langfuse.observation.output": decoded(observation.get("output")),
    }
    attributes |= known(given)
    if model := text(observation.get("model")):
        attributes.setdefault("gen_ai.request.model", model)
    usage = mapping(decoded(field(observation, "usageDetails", "usage")))
    for name, spellings in _USAGE.items():
        attributes.setdefault(name, field(usage, *spellings))
    for name, value in mapping(decoded(observation.get("modelParameters"))).items():
        attributes.setdefault(f"gen_ai.request.{name}", value)
    if tools := field(observation, "toolDefinitions"):
        attributes.setdefault("gen_ai.tool.definitions", _definitions(decoded(tools)))
    failed = observation.get("level") == "ERROR"
    return Span(
        id=text(observation.get("id")) or "",
        name=text(observation.get("name")) or "",
        parent=text(observation.get("parentObservationId")),
        started=nanoseconds(observation.get("startTime")) or 0,
        ended=nanoseconds(observation.get("endTime")),
        error=(text(observation.get("statusMessage")) or "error") if failed else None,
        attributes=attributes,
    )


def _definitions(tools: Json) -> Json:
    """Return tool definitions as a list; Langfuse has an object of JSON texts by name."""
    if not isinstance(tools, dict):
        return [decoded(tool) for tool in items(tools)]
    return [{"name": name, **mapping(decoded(tool))} for name, tool in tools.items()]
