"""Read runs that LangSmith dumped: a list of them, lines of them, or a run with its child runs."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.interop.importing.span_values import known, nanoseconds
from tracefork_core.interop.span import Span
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text

_KINDS = {
    "llm": "chat",
    "tool": "execute_tool",
    "retriever": "retrieval",
    "embedding": "embeddings",
    "chain": "CHAIN",
    "prompt": "CHAIN",
    "parser": "CHAIN",
}


def is_langsmith(document: Json) -> bool:
    """Return whether a document is a run of LangSmith, or a list of runs."""
    first = next(_runs(document), {})
    return "run_type" in first and "id" in first


def read_langsmith(document: Json) -> list[Span]:
    """Return the runs as spans, child runs after their parents."""
    return [_span(run) for run in _runs(document)]


def _runs(document: Json) -> Iterator[dict[str, Json]]:
    if isinstance(document, dict) and "run_type" not in document:
        document = field(document, "runs", "data")
    waiting = [mapping(document)] if isinstance(document, dict) else mappings(document)
    seen = 0
    while waiting and seen < 1_000_000:
        run = waiting.pop(0)
        yield run
        seen += 1
        children = mappings(run.get("child_runs"))
        waiting[:0] = [{"parent_run_id": run.get("id"), **child} for child in children]


def _span(run: dict[str, Json]) -> Span:
    kind = text(run.get("run_type")) or "chain"
    extra = mapping(run.get("extra"))
    metadata = mapping(extra.get("metadata"))
    settings = mapping(field(extra, "invocation_params"))
    inputs, outputs = run.get("inputs"), run.get("outputs")
    given: dict[str, Json] = {
        "gen_ai.operation.name": _KINDS.get(kind, "CHAIN"),
        "gen_ai.request.model": field(metadata, "ls_model_name")
        or field(settings, "model", "model_name"),
        "gen_ai.provider.name": metadata.get("ls_provider"),
        "gen_ai.tool.definitions": settings.get("tools"),
        "llm.invocation_parameters": settings,
        "graph.node.id": metadata.get("langgraph_node"),
        **_messages(kind, inputs, outputs),
        **_usage(mapping(outputs), run),
    }
    return Span(
        id=text(run.get("id")) or "",
        name=text(run.get("name")) or kind,
        parent=text(run.get("parent_run_id")),
        started=nanoseconds(run.get("start_time")) or 0,
        ended=nanoseconds(run.get("end_time")),
        error=text(run.get("error")),
        attributes=known(given),
    )


def _messages(kind: str, inputs: Json, outputs: Json) -> dict[str, Json]:
    if kind == "tool":
        result = mapping(outputs).get("output") if isinstance(outputs, dict) else outputs
        return {
            "gen_ai.tool.call.arguments": inputs,
            "gen_ai.tool.call.result": _content(result) if result is not None else outputs,
        }
    if kind == "llm":
        answered = field(mapping(outputs), "generations", "choices", "message") or outputs
        asked = field(mapping(inputs), "messages", "prompts", "input") or inputs
        return {"gen_ai.input.messages": asked, "gen_ai.output.messages": _generated(answered)}
    return {}


def _generated(value: Json) -> Json:
    """Return the messages of LangChain's generations, whose first list is the first prompt's."""
    first = items(value)[0] if items(value) else value
    generations = mappings(first) if isinstance(first, list) else mappings(value)
    found = [generation["message"] for generation in generations if "message" in generation]
    return found or value


def _content(result: Json) -> Json:
    """Return what a tool returned; LangGraph's tools wrap it in a message."""
    inner = mapping(mapping(result).get("kwargs")) or mapping(result)
    return inner.get("content", result)


def _usage(outputs: dict[str, Json], run: dict[str, Json]) -> dict[str, Json]:
    reported = mapping(field(mapping(outputs.get("llm_output")), "token_usage", "usage"))
    for message in mappings(_generated(outputs.get("generations"))):
        kwargs = mapping(message.get("kwargs")) or message
        reported = reported or mapping(kwargs.get("usage_metadata"))
    reported = reported or mapping(field(outputs, "usage_metadata", "usage")) or run
    return {
        "gen_ai.usage.input_tokens": field(reported, "input_tokens", "prompt_tokens"),
        "gen_ai.usage.output_tokens": field(reported, "output_tokens", "completion_tokens"),
        "gen_ai.usage.cache_read.input_tokens": mapping(reported.get("input_token_details")).get(
            "cache_read"
        ),
        "gen_ai.usage.reasoning.output_tokens": mapping(reported.get("output_token_details")).get(
            "reasoning"
        ),
    }
