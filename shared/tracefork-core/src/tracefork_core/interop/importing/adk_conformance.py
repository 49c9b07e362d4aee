"""Read what `adk conformance record` has written: Google ADK's own recordings of a run.

ADK keeps the messages as its models, in snake_case, by user message and agent. There are no bytes,
times, failed calls or chunks. They become calls in Gemini's format, to a host that does not exist.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from tracefork_core.exchange.contract import TOOL, Head, Request
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, ForeignStep
from tracefork_core.providers.lenient import Json, compact, items, mapping, mappings, text

NAME = "ADK conformance recording"
_HOST = "http://adk-recording.invalid/v1beta/models"
_JSON = (("content-type", "application/json"),)
_OK = Head(200, "OK", _JSON)
_OWN_KEYS = ("args", "response", "parameters_json_schema", "response_json_schema", "labels")
"""Fields whose keys are the user's own."""
_UNDERSCORE = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")
_MISSING = "ADK keeps messages and results, and no bytes, times, partial answers or failed calls"


def is_adk_recording(document: Any) -> bool:
    """Return whether a document is a recording of ADK."""
    held = document.get("recordings") if isinstance(document, dict) else None
    return isinstance(held, list) and any(
        isinstance(each, dict) and ("llm_recording" in each or "tool_recording" in each)
        for each in held
    )


def read_adk_recording(document: Any) -> ForeignRun:
    """Return the run in a recording: a step for each user message, and one for each agent in it."""
    run = ForeignRun(NAME, missing=[_MISSING])
    known: set[str] = set()
    for each in mappings(document["recordings"]):
        message = f"message {each.get('user_message_index', 0)}"
        agent = text(each.get("agent_name")) or "agent"
        step = f"{message}, {agent}"
        for id_, kind, name, parent in (
            (message, "run", message, None),
            (step, "agent", agent, message),
        ):
            if id_ not in known:
                known.add(id_)
                run.steps.append(ForeignStep(id_, kind, name, parent))
        model, tool = mapping(each.get("llm_recording")), mapping(each.get("tool_recording"))
        exchange = _model_call(model) if model else _tool_call(tool)
        exchange.step = step
        run.exchanges.append(exchange)
    return run


def _model_call(recorded: dict[str, Json]) -> ForeignExchange:
    asked = mapping(recorded.get("llm_request"))
    model = text(asked.get("model")) or "unknown"
    config = dict(mapping(asked.get("config")))
    system, tools = config.pop("system_instruction", None), config.pop("tools", None)
    body: dict[str, Json] = {"contents": items(asked.get("contents"))}
    if system is not None:
        body["system_instruction"] = {"parts": [{"text": system}]} if text(system) else system
    if tools:
        body["tools"] = tools
    if config:
        body["generation_config"] = config
    answers = mappings(recorded.get("llm_responses"))
    answer = answers[-1] if answers else {}
    candidate: Json = {
        name: answer[name] for name in ("content", "finish_reason") if name in answer
    }
    answered: dict[str, Json] = {"candidates": [candidate]}
    answered |= {name: answer[name] for name in ("usage_metadata",) if name in answer}
    return ForeignExchange(
        Request(
            "POST",
            f"{_HOST}/{quote(model, safe='')}:generateContent",
            _JSON,
            compact(_camel(body)).encode(),
            "import",
        ),
        _OK if answers else None,
        (compact(_camel(answered)).encode(),) if answers else (),
        grade="content" if asked and answers else "structure",
    )


def _tool_call(recorded: dict[str, Json]) -> ForeignExchange:
    call, response = mapping(recorded.get("tool_call")), recorded.get("tool_response")
    result = mapping(response).get("response")
    return ForeignExchange(
        Request(
            "CALL",
            f"tool:{text(call.get('name')) or 'unknown'}",
            (),
            compact(mapping(call.get("args"))).encode(),
            TOOL,
        ),
        _OK,
        (compact(result).encode(),),
        grade="content" if call and isinstance(response, dict) else "structure",
    )


def _camel(value: Json) -> Json:
    """Return a value with the keys of Gemini's API in place of ADK's; the user's stay."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        _UNDERSCORE.sub(lambda match: match[1].upper(), name): held
        if name in _OWN_KEYS
        else _camel(held)
        for name, held in value.items()
    }
