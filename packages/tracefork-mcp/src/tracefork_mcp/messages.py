"""Read and build the JSON-RPC messages of `mcp`, in its versions 1 and 2.

On the tape, a message has no id where the exchange says what it answers, and no progress token:
the client counts those, and a fork sends other ones. A line of an answer is one message that came
from the server:

    {"result": {…}}                                     the response
    {"error": {"code": …, "message": …}}                the response, if it is an error
    {"method": "notifications/progress", "params": …}   what came before it
    {"method": "sampling/createMessage", "id": 7, …}    a request of the server
    {"unreadable": "…"}                                 what the client could not read
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.shared.message import SessionMessage

VERSION = 2 if hasattr(types, "jsonrpc_message_adapter") else 1

Message = dict[str, Any]
Id = str | int

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"
_HANDSHAKE = ("initialize", "server/discover")
"""What a client says of itself there changes with its version."""
_REPEATED = frozenset(
    {
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    }
)
_KINDS = frozenset({"result", "error", "method", "unreadable"})
_TOKEN = "progressToken"  # noqa: S105 - no secret
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
"""In `_meta` of a notification: the id of the request that subscribed to it."""
_VOLATILE = frozenset(
    {
        _TOKEN,
        "traceparent",
        "tracestate",
        "baggage",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
    }
)
"""Parts of `_meta` that differ from run to run, or from version to version of the client."""


def read(item: Any) -> Message:
    """Return a message of a transport as JSON."""
    message = getattr(item.message, "root", item.message)
    data: Message = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return data


def built(message: Mapping[str, Any], like: Any = None) -> Any:
    """Return a message as a transport delivers it, with the metadata of another one."""
    data = {"jsonrpc": "2.0", **message}
    if VERSION == 1:
        made = types.JSONRPCMessage.model_validate(data)
    else:
        made = types.jsonrpc_message_adapter.validate_python(data, by_name=False)
    return SessionMessage(made, getattr(like, "metadata", None))


def is_response(message: Message) -> bool:
    """Return whether a message answers a request."""
    return "method" not in message


def is_request(message: Message) -> bool:
    """Return whether a message asks for an answer."""
    return "method" in message and "id" in message


def is_handshake(message: Message) -> bool:
    """Return whether a server must have heard a message before it can serve what follows."""
    return message.get("method") in _REPEATED


def token_of(message: Message) -> Id | None:
    """Return the progress token that a request carries, or that a notification reports to."""
    params = message.get("params") or {}
    if message.get("method") == PROGRESS:
        return params.get(_TOKEN)
    meta = params.get("_meta")
    return meta.get(_TOKEN) if isinstance(meta, dict) else None


def subscription_of(message: Message) -> Id | None:
    """Return the id of the request that subscribed to a notification, if it says so."""
    meta = (message.get("params") or {}).get("_meta")
    return meta.get(_SUBSCRIPTION) if isinstance(meta, dict) else None


def compared(message: Message) -> bytes:
    """Return the part of an outgoing message that a replay compares, as JSON."""
    if is_response(message):
        return _json({name: message[name] for name in ("result", "error") if name in message})
    params = dict(message.get("params") or {})
    if message["method"] in _HANDSHAKE:
        return b"{}"
    meta = params.pop("_meta", None)
    if isinstance(meta, dict):
        kept = {name: value for name, value in meta.items() if name not in _VOLATILE}
        if kept:
            params["_meta"] = kept
    return _json(params)


def edited(message: Message, body: bytes) -> Message:
    """Return a request with other params, as a fork changed them."""
    params: dict[str, Any] = json.loads(body)
    meta = (message.get("params") or {}).get("_meta")
    if meta is not None:
        params["_meta"] = {**meta, **(params.get("_meta") or {})}
    return {**message, "params": params}


def line(message: Message, *, is_own: bool) -> bytes:
    """Return an incoming message as a line of an answer. `is_own`: the exchange asked for it."""
    kept = {name: value for name, value in message.items() if name != "jsonrpc"}
    if is_own:
        kept.pop("id", None)
        if kept.get("method") == PROGRESS:
            kept["params"] = {n: v for n, v in kept["params"].items() if n != _TOKEN}
        if subscription_of(message) is not None:
            kept["params"] = _subscribed(message["params"], None)
    # In the order in which it came: agents put schemas and results into prompts as they are.
    return _json(kept, is_sorted=False) + b"\n"


def unreadable(error: Exception) -> bytes:
    """Return what the client could not read as a line of an answer."""
    return _json({"unreadable": str(error)}) + b"\n"


def from_line(data: bytes, request: Id, token: Id | None) -> Any:
    """Return a line of an answer as a transport delivers it, to a request with this id."""
    message: Message = json.loads(data)
    if _KINDS.isdisjoint(message):
        message = {"result": message}  # Given by a fork: the result alone.
    if "unreadable" in message:
        return ValueError(message["unreadable"])
    if is_response(message):
        return built({"id": request, **message})
    if message["method"] == PROGRESS and _TOKEN not in (message.get("params") or {}):
        params = {_TOKEN: request if token is None else token, **(message.get("params") or {})}
        message = {**message, "params": params}
    meta = (message.get("params") or {}).get("_meta")
    if isinstance(meta, dict) and meta.get(_SUBSCRIPTION, request) is None:
        message = {**message, "params": _subscribed(message["params"], request)}
    return built(message)


def _subscribed(params: Message, request: Id | None) -> Message:
    """Return the parameters of a notification that this request subscribed to."""
    return {**params, "_meta": {**params["_meta"], _SUBSCRIPTION: request}}


def refusal(request: Id, error: Exception) -> Any:
    """Return the response that tells a client of an error of its session."""
    return built({"id": request, "error": {"code": -32099, "message": str(error)}})


def _json(value: object, *, is_sorted: bool = True) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=is_sorted)
    return text.encode("utf-8", "surrogatepass")
