"""How exchanges with MCP servers read, and how a fork answers and changes them.

This file imports nothing of `mcp`: `tracefork show` loads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from tracefork_core import UsageError
from tracefork_core.adapters.formats import Answer, Asked, Json, ToolUse, Wanted

LINES = ("content-type", "application/x-ndjson")
"""The content type of an answer: a message of the server on each line."""
_USES = ("tools/call", "resources/read", "prompts/get")
_ERROR = -32603


class McpFormat:
    """The wire format of the seam `mcp`. See `messages` for the lines of an answer."""

    def reads(self, method: str, url: str) -> bool:
        """Return whether this is an exchange with an MCP server."""
        return url.startswith("mcp:") and method in _USES

    def decode(self, asked: Asked, answered: Answer | None) -> ToolUse | None:
        """Return the call of a tool, a resource or a prompt."""
        params = _document(asked.body)
        if not isinstance(params, dict):
            return None
        place, _, name = asked.url.removeprefix("mcp:").partition("/")
        response = _response(answered)
        result = response.get("result")
        is_error = "error" in response or (isinstance(result, dict) and bool(result.get("isError")))
        if asked.method == "tools/call":
            arguments = params.get("arguments")
            return ToolUse(unquote(name), arguments, place, _told(response), is_error)
        arguments = {key: value for key, value in params.items() if key != "_meta"}
        return ToolUse(asked.method, arguments, place, _told(response), is_error)

    def encode(self, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
        """Return an answer with another result.

        Raises:
            UsageError: the request cannot be answered like this.
        """
        if wanted.tool_calls:
            raise UsageError(f"tracefork: {_where(asked)} calls no tools. Give it a text.")
        if wanted.status is not None:
            error = {"code": _ERROR, "message": wanted.text or f"status {wanted.status}"}
            return _answer({"error": error})
        if wanted.has_document:
            document = wanted.document
            if isinstance(document, dict) and ("result" in document or "error" in document):
                return _answer(document)
            return _answer({"result": document})
        before = _response(recorded).get("result")
        result = dict(before) if isinstance(before, dict) else {}
        return _answer({"result": _reworded(asked, result, wanted.text or "")})

    def reword(self, asked: Asked, changes: Mapping[str, object]) -> tuple[str, bytes]:
        """Return the URL and the body of a request with other values.

        Raises:
            UsageError: a change is not a value, or there is no such place.
        """
        values = changes.get("values")
        if set(changes) != {"values"} or not isinstance(values, Mapping):
            raise UsageError(
                f"tracefork: {_where(asked)} is no call of a model. Change its arguments: "
                '--set /arguments/NAME=VALUE (Edit(values={"/arguments/NAME": VALUE})).'
            )
        params: Any = _document(asked.body)
        for pointer, value in values.items():
            _put(params, pointer, value, asked)
        place = asked.url.partition("/")[0]
        name = params.get("name")
        url = f"{place}/{quote(name)}" if isinstance(name, str) else asked.url
        return url, json.dumps(params, ensure_ascii=False, sort_keys=True).encode()

    def status_of(self, error: str) -> int | None:
        """Return None: the errors of MCP have no names."""


FORMAT = McpFormat()


def _answer(message: object) -> Answer:
    line = json.dumps(message, ensure_ascii=False, sort_keys=True).encode() + b"\n"
    return Answer(200, (LINES,), (line,))


def _response(answered: Answer | None) -> dict[str, Any]:
    """Return the response on the last line of an answer, as far as it came."""
    lines = answered.body.split(b"\n") if answered is not None else []
    for line in reversed(lines):
        message = _document(line)
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return message
    return {}


def _told(response: Mapping[str, Any]) -> Json:
    """Return what people want to see of a response."""
    if "error" in response:
        error = response["error"]
        return error.get("message") if isinstance(error, dict) else error
    result: Json = response.get("result")
    if not isinstance(result, dict):
        return result
    parts = result.get("content") or result.get("contents")
    texts = [
        str(part["text"])
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and "text" in part
    ]
    return "\n".join(texts) if texts else result


def _reworded(asked: Asked, result: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the result of a request with a text as its content."""
    if asked.method == "tools/call":
        result |= {"content": [{"type": "text", "text": text}], "isError": False}
        if "structuredContent" in result:
            result["structuredContent"] = _structured(asked, result["structuredContent"], text)
        return result
    if asked.method == "resources/read":
        contents = result.get("contents")
        first = dict(contents[0]) if isinstance(contents, list) and contents else {}
        first.pop("blob", None)
        uri = (_document(asked.body) or {}).get("uri")
        return {**result, "contents": [{"uri": uri, **first, "text": text}]}
    content = {"type": "text", "text": text}
    return {**result, "messages": [{"role": "user", "content": content}]}


def _structured(asked: Asked, before: object, text: str) -> object:
    """Return the structured content that belongs to a text: clients check it against a schema."""
    if isinstance(before, dict) and set(before) == {"result"}:
        if isinstance(before["result"], str):
            return {"result": text}
        return {"result": _json_of(asked, text)}
    return _json_of(asked, text)


def _json_of(asked: Asked, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"tracefork: {_where(asked)} returns structured content. Give its new content as JSON, "
            "or the whole result: Replace(document=…)."
        ) from error


def _put(document: Any, pointer: str, value: object, asked: Asked) -> None:
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    parent = document
    try:
        for part in path:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        if isinstance(parent, list):
            parent[int(last)] = value
        else:
            parent[last] = value
    except (KeyError, IndexError, TypeError, ValueError):
        raise UsageError(f"tracefork: {_where(asked)} has no {pointer}.") from None


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _where(asked: Asked) -> str:
    return f"{asked.method} {asked.url}"
