"""What an instrumentation says of a run, imported, is what the recording of that run holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_core.providers import ModelCall, Part, TextPart, model_call
from tracefork_core.tape import Tape
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

AGENT = Path(__file__).with_name("agent.py")
CAPTURED = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_and_event",
    "TRACELOOP_TRACE_CONTENT": "true",
}
WITHOUT = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "no_content",
    "TRACELOOP_TRACE_CONTENT": "false",
    "OPENINFERENCE_HIDE_INPUTS": "true",
    "OPENINFERENCE_HIDE_OUTPUTS": "true",
}


def weather(request: ModelRequest) -> Reply:
    """Call the tool first, where there is one."""
    if request.tools and not any(message.tool_results for message in request.messages):
        return Reply(tool_calls=[ToolCall("look_up", {"city": "Oslo"})])
    return Reply("It is sunny.")


def traced(instrumentation: str, folder: Path, settings: dict[str, str]) -> tuple[Path, Path]:
    """Record the agent under an instrumentation; return the recording, and its trace imported."""
    recording, trace, imported = (folder / name for name in ("run.tape", "trace.json", "in.tape"))
    command = [sys.executable, "-m", "tracefork_core"]
    environment = os.environ | CAPTURED | settings
    with ProviderServer(weather) as server:
        words = [instrumentation, server.url.removesuffix("/v1"), str(trace)]
        for arguments in (
            ["record", "-o", str(recording), str(AGENT), "--", *words],
            ["import", str(trace), "-o", str(imported)],
        ):
            subprocess.run([*command, *arguments], check=True, env=environment, timeout=120)
    return recording, imported


def calls_on(path: Path) -> list[ModelCall]:
    """Return the model calls of a tape."""
    with Tape.open(path) as tape:
        return [call for exchange in tape.exchanges if (call := model_call(exchange))]


def parts_in(call: ModelCall) -> list[Part]:
    """Return what was asked: some put instructions beside the messages, and some among them."""
    return [*call.system, *(part for message in call.input for part in message.parts)]


def answer_of(call: ModelCall) -> list[Part]:
    """Return what was answered; OpenLLMetry adds an empty text to a call of a tool."""
    said = (part for message in call.output for part in message.parts)
    return [part for part in said if part != TextPart("")]


@pytest.mark.parametrize("instrumentation", ["genai", "openinference", "openllmetry"])
def test_the_messages_are_those_of_the_recording(instrumentation: str, tmp_path: Path) -> None:
    """Texts, tool calls and results, tools, models and counts of five calls."""
    recording, imported = traced(instrumentation, tmp_path, {})
    recorded, told = calls_on(recording), calls_on(imported)
    assert len(recorded) == len(told) == 5
    for ours, theirs in zip(recorded, told, strict=True):
        assert parts_in(theirs) == parts_in(ours)
        assert answer_of(theirs) == answer_of(ours)
        assert theirs.request_model == ours.request_model
        assert theirs.provider == ours.api.partition(".")[0]
        assert [tool.name for tool in theirs.tools] == [tool.name for tool in ours.tools]
    with Tape.open(imported) as tape:
        assert tape.imported is not None
        assert tape.imported.grade == "content"


@pytest.mark.parametrize("instrumentation", ["genai", "openinference", "openllmetry"])
def test_a_trace_without_content_is_structure(instrumentation: str, tmp_path: Path) -> None:
    """The calls are there, and the tape does not claim to have what was said."""
    _, imported = traced(instrumentation, tmp_path, WITHOUT)
    with Tape.open(imported) as tape:
        assert len(tape.exchanges) == 5
        assert tape.imported is not None
        assert tape.imported.grade == "structure"
