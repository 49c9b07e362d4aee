"""Make a tape of what `adk conformance record` has written.

ADK records messages as its own models, so such a tape is *decoded*: it holds what models were asked
and answered and what tools returned, in order and by agent. It does not hold the bytes and headers
of any request, its time, partial answers, failed calls, or clock and randomness. Its requests go to
a host that does not exist. So it can be read, and not replayed with the agent that was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from google.adk.cli.plugins.recordings_schema import LlmRecording, Recordings, ToolRecording
from pydantic import ValidationError

from tracefork_core import UsageError, record
from tracefork_core.adapters import Head, Request, session_here, step, tool_exchange

FILES = ("generated-recordings.yaml", "generated-recordings-sse.yaml")
SEAM = "adk-recording"
"""What the tape says in place of the library that sent a request."""
MISSING = (
    *("bytes and headers of requests", "times", "partial answers", "failed calls"),
    *("clock and randomness",),
)


@dataclass(frozen=True, slots=True)
class ImportedRecording:
    """What an imported tape has, and what it lacks."""

    models: int
    tools: int
    fidelity: str = "decoded"
    missing: tuple[str, ...] = MISSING


def import_recording(
    folder: str | Path, tape: str | Path, *, overwrite: bool = False
) -> ImportedRecording:
    """Make a tape of the recordings in a folder of `adk conformance record`.

    Raises:
        UsageError: the folder has no such file, it is corrupt, or the tape exists already.
    """
    recordings = _read(Path(folder)).recordings
    models = tools = 0
    with record(tape, overwrite=overwrite, clock=False, entropy=False):
        for one in recordings:
            with step("run", f"message {one.user_message_index}"), step("agent", one.agent_name):
                if one.llm_recording is not None:
                    _put_model_call(one.llm_recording)
                    models += 1
                elif one.tool_recording is not None:
                    _put_tool_call(one.tool_recording)
                    tools += 1
    return ImportedRecording(models, tools)


def _read(folder: Path) -> Recordings:
    file = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if file is None:
        raise UsageError(
            f"tracefork: {folder} has no {FILES[0]}. Name the folder that `adk conformance record` "
            "wrote it to."
        )
    try:
        return Recordings.model_validate(yaml.safe_load(file.read_text()))
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise UsageError(f"tracefork: {file} is not a recording of ADK: {error}.") from error


def _put_model_call(recorded: LlmRecording) -> None:
    asked, answers = recorded.llm_request, recorded.llm_responses or []
    session = session_here()
    assert session is not None
    model = asked.model if asked is not None else None
    url = f"http://adk-recording.invalid/v1beta/models/{model or 'unknown'}:generateContent"
    headers = (("content-type", "application/json"),)
    with step("model", model or "unknown"):
        live = session.open(Request("POST", url, headers, _json(_request(asked)), SEAM))
        if live is None or not live.is_live:
            return
        live.head(Head(200, "OK", headers))
        live.chunk(_json(_answer(answers[-1]) if answers else {}))
        live.end()


def _request(asked: Any) -> dict[str, Any]:
    if asked is None:
        return {"contents": []}
    config = _plain(asked.config)
    system = config.pop("systemInstruction", None)
    tools = config.pop("tools", None)
    body: dict[str, Any] = {"contents": [_plain(content) for content in asked.contents]}
    if system is not None:
        text = {"parts": [{"text": system}]}
        body["systemInstruction"] = text if isinstance(system, str) else system
    return (
        body
        | ({"tools": tools} if tools else {})
        | ({"generationConfig": config} if config else {})
    )


def _answer(answer: Any) -> dict[str, Any]:
    candidate = {"content": _plain(answer.content) if answer.content else {"parts": []}}
    if answer.finish_reason is not None:
        candidate["finishReason"] = answer.finish_reason.value
    usage = answer.usage_metadata
    return {"candidates": [candidate]} | ({"usageMetadata": _plain(usage)} if usage else {})


def _put_tool_call(recorded: ToolRecording) -> None:
    call, response = recorded.tool_call, recorded.tool_response
    if call is None:
        return
    name, result = call.name or "unknown", response.response if response is not None else None
    returned: Callable[..., object] = lambda **_: result  # noqa: E731
    with step("tool", name):
        tool_exchange(name, dict(call.args or {}), returned)


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
