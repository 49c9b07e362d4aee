"""Read logs that hold what was said, and no requests: ATIF trajectories and Who&When runs.

Such a log does not say what a model was sent. Each of its calls shows as the question what was new
since the model's last answer, and nothing is invented.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.interop.importing.span_values import known, nanoseconds
from tracefork_core.interop.span import Span
from tracefork_core.providers.lenient import Json, field, mapping, mappings, text
from tracefork_core.tape.imported import Blamed

_PEOPLE = ("human", "user", "Computer_terminal", "ComputerTerminal")
"""Speakers of Who&When that are no model."""


def is_atif(document: Json) -> bool:
    """Return whether a document is a trajectory in the Agent Trajectory Interchange Format."""
    version = text(mapping(document).get("schema_version")) or ""
    return version.startswith("ATIF-")


def read_atif(document: Json) -> list[Span]:
    """Return a model call for each step of the agent, with its tools' calls behind it."""
    trajectory = mapping(document)
    agent = mapping(trajectory.get("agent"))
    root = Span("agent", text(agent.get("name")) or "agent")
    root.attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": root.name}
    spans, heard = [root], list[Json]()
    for n, step in enumerate(mappings(trajectory.get("steps"))):
        time = nanoseconds(step.get("timestamp")) or n
        source = text(step.get("source")) or "agent"
        if source != "agent":
            heard.append({"role": source, "content": step.get("message")})
            continue
        spans.append(_turn(step, agent, f"step-{n}", time, heard))
        results = _results(mapping(step.get("observation")))
        heard = [
            {"role": "tool", "tool_call_id": call, "content": content} for call, content in results
        ]
        for m, call in enumerate(mappings(step.get("tool_calls"))):
            spans.append(_tool(call, f"step-{n}-{m}", time + m + 1, dict(results)))
    root.started = min((span.started for span in spans[1:]), default=0)
    return spans


def is_who_and_when(document: Json) -> bool:
    """Return whether a document is a failed run of Who&When."""
    run = mapping(document)
    return isinstance(run.get("history"), list) and "mistake_step" in run


def read_who_and_when(document: Json) -> list[Span]:
    """Return a span for each entry of the history, so that its step N is exchange N."""
    run = mapping(document)
    root = Span("run", "run", error="failed", attributes={"error.type": "failed"})
    spans, heard = [root], list[Json]()
    instructions = mapping(run.get("system_prompt"))
    for n, entry in enumerate(mappings(run.get("history"))):
        speaker = text(entry.get("name")) or text(entry.get("role")) or "agent"
        agent = speaker.partition(" (")[0]
        turn = Span(f"turn-{n}", speaker, parent="run", started=n)
        turn.attributes = {"gen_ai.operation.name": "invoke_agent"}
        span = Span(str(n), speaker, parent=turn.id, started=n)
        if agent in _PEOPLE:
            span.attributes = known(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": agent,
                    "gen_ai.tool.call.result": entry.get("content"),
                }
            )
        else:
            span.attributes = known(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": list(heard),
                    "gen_ai.system_instructions": instructions.get(agent),
                    "gen_ai.output.messages": [_said(entry, "assistant")],
                }
            )
            heard.clear()
        heard.append(_said(entry, "user") | {"name": speaker})
        spans += [turn, span]
    return spans


def blamed_in(document: Json) -> Blamed | None:
    """Return what people blamed a failed run of Who&When on; None if the log does not say."""
    run = mapping(document)
    step = run.get("mistake_step")
    number = int(step) if isinstance(step, str) and step.isdigit() else step
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    agent, reason = text(run.get("mistake_agent")), text(run.get("mistake_reason"))
    return Blamed(number, agent, reason)


def _said(entry: dict[str, Json], role: str) -> dict[str, Json]:
    content = entry.get("content")
    spoken = content if isinstance(content, str) else None
    return {"role": role, "content": [{"type": "text", "text": spoken}] if spoken else content}


def _turn(
    step: dict[str, Json], agent: dict[str, Json], name: str, time: int, heard: list[Json]
) -> Span:
    calls: list[Json] = [
        {
            "type": "tool_call",
            "id": call.get("tool_call_id"),
            "name": call.get("function_name"),
            "arguments": call.get("arguments"),
        }
        for call in mappings(step.get("tool_calls"))
    ]
    said: list[Json] = [
        {"type": "reasoning", "content": thought}
        for thought in [text(step.get("reasoning_content"))]
        if thought
    ]
    said += [
        {"type": "text", "content": spoken} for spoken in [text(step.get("message"))] if spoken
    ]
    metrics = mapping(step.get("metrics"))
    given: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": field(step, "model_name") or agent.get("model_name"),
        "gen_ai.input.messages": list(heard),
        "gen_ai.output.messages": [{"role": "assistant", "parts": [*said, *calls]}],
        "gen_ai.tool.definitions": agent.get("tool_definitions"),
        "gen_ai.usage.input_tokens": metrics.get("prompt_tokens"),
        "gen_ai.usage.output_tokens": metrics.get("completion_tokens"),
        "gen_ai.usage.cache_read.input_tokens": metrics.get("cached_tokens"),
    }
    return Span(name, "chat", parent="agent", started=time, attributes=known(given))


def _results(observation: dict[str, Json]) -> Iterator[tuple[str | None, Json]]:
    for result in mappings(observation.get("results")):
        yield text(result.get("source_call_id")), result.get("content")


def _tool(call: dict[str, Json], name: str, time: int, results: dict[str | None, Json]) -> Span:
    given: dict[str, Json] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.get("function_name"),
        "gen_ai.tool.call.arguments": call.get("arguments"),
        "gen_ai.tool.call.result": results.get(text(call.get("tool_call_id"))),
    }
    return Span(name, "execute_tool", parent="agent", started=time, attributes=known(given))
