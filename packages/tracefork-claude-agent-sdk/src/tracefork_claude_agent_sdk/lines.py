"""Read and build the JSON lines between the SDK and Claude Code.

On the tape, the answer of an exchange has the lines of Claude Code, one after the other. A response
to a request of the SDK has no id there, because the SDK makes new ids in each run. The line
`{"type": "tracefork_end"}` says that Claude Code closed the connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from tracefork_core import ReplayError
from tracefork_core.adapters import Effect, Head, Request

Line = dict[str, Any]

SEAM = "claude-agent-sdk"
SCHEME = "claude-code:"
NDJSON = ("content-type", "application/x-ndjson")
LINES = Head(200, "OK", (NDJSON,))
ACCEPTED = Head(202, "Accepted", (("content-length", "0"),))
END: Line = {"type": "tracefork_end"}
REPLACED = "00000000-0000-0000-0000-000000000000"
"""The id of an answer that a fork gave, and that Claude Code does not know."""
INITIALIZE, PROMPT = "initialize", "prompt"
_JSON = ("content-type", "application/json")
_WRITES = frozenset({PROMPT, "rewind_files"})
SETTINGS = frozenset({INITIALIZE, "set_model", "set_permission_mode", "mcp_toggle"})
"""Requests that a Claude Code which starts in a fork must have got before its first prompt."""
_OF_CLI = {"hook_callback": "hook", "can_use_tool": "permission", "mcp_message": "mcp"}


class Named(NamedTuple):
    """What an exchange is called: its method, and what it is about."""

    method: str
    about: str


def named(line: Line, asked: Mapping[str, Line]) -> Named:
    """Return what the exchange of a line of the SDK is called.

    Args:
        line: the line.
        asked: the open requests of Claude Code, by their ids.
    """
    kind = line.get("type")
    if kind == "control_request":
        return Named(str(line["request"].get("subtype")), "session")
    if kind == "control_response":
        return _of_response(asked.get(str(line["response"].get("request_id")), {}))
    return Named(PROMPT if kind == "user" else str(kind), "session")


def _of_response(request: Line) -> Named:
    subtype = str(request.get("subtype"))
    method = _OF_CLI.get(subtype, subtype)
    if subtype == "hook_callback":
        given = request.get("input") or {}
        parts = [given.get("hook_event_name"), given.get("tool_name")]
    elif subtype == "can_use_tool":
        parts = [request.get("tool_name")]
    else:
        message = request.get("message") or {}
        parts = [request.get("server_name"), message.get("method")]
        parts.append((message.get("params") or {}).get("name"))
    return Named(method, "/".join(str(part) for part in parts if part) or "session")


def request_of(name: Named, body: Any) -> Request:
    """Return the request of an exchange; `body` is what a replay compares."""
    effect: Effect = "write" if name.method in _WRITES else "read"
    url = SCHEME + quote(name.about, safe="/")
    return Request(name.method, url, (_JSON,), dumped(body), SEAM, effect)


def compared(line: Line) -> Any:
    """Return the part of a line of the SDK that a replay compares."""
    kind = line.get("type")
    if kind == "control_request":
        return line["request"]
    if kind == "control_response":
        return {name: part for name, part in line["response"].items() if name != "request_id"}
    left_out = ("type", "session_id", "uuid")
    return {name: part for name, part in line.items() if name not in left_out}


def dumped(document: Any) -> bytes:
    """Return JSON with sorted keys."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def stored(line: Mapping[str, Any]) -> bytes:
    """Return a line of Claude Code as it stands on the tape."""
    if line.get("type") == "control_response" and isinstance(line.get("response"), dict):
        line = {**line, "response": dict(line["response"])}
        line["response"].pop("request_id", None)
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def parsed(data: bytes) -> Line:
    """Return a line of the tape.

    Raises:
        ReplayError: it is no JSON object.
    """
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise ReplayError(
            f"tracefork: an answer of Claude Code has a line that is no JSON object: "
            f"{data[:50]!r}. "
            "Record the run again, or give another answer with --text."
        )
    return line


def response_id(line: Line) -> str | None:
    """Return the id of the request of the SDK that a line answers; None if it answers none."""
    if line.get("type") != "control_response":
        return None
    return (line.get("response") or {}).get("request_id")


def answering(line: Line, request_id: str | None) -> Line:
    """Return a recorded line as the answer to a request with this id."""
    if line.get("type") != "control_response" or request_id is None:
        return line
    return {**line, "response": {**(line.get("response") or {}), "request_id": request_id}}
