"""Answer calls of MCP servers from the tape: a replay starts no process and connects to nothing.

The list of a server's tools is on the tape, since models receive it, and so is each call. A
connection is an exchange of its own, which records whether it succeeded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from tracefork_core.adapters import Effect, Patches, in_session
from tracefork_crewai import ADAPTER
from tracefork_crewai.tool_calls import Leaf, acall
from tracefork_crewai.tool_values import Values, declared_by

_CONNECTED = "_tracefork_connected"


def put_in(patches: Patches) -> None:
    """Make calls of MCP servers exchanges of the open session."""
    for module in (_CLIENTS, _RESOLVERS):  # Applied at their import, which is slow.
        patches.switch(module.on, module.off)


def _of_clients(patches: Patches, module: ModuleType) -> None:
    _forget(module)
    client = module.MCPClient
    patches.wrap(client, "connect", _connect)
    patches.wrap(client, "disconnect", _disconnect)
    for name in ("list_tools", "list_prompts"):
        patches.wrap(client, name, partial(_asking, name, "read"))
    for name in ("call_tool_result", "get_prompt"):
        patches.wrap(client, name, partial(_asking, name, None))


def _of_resolvers(patches: Patches, module: ModuleType) -> None:
    _forget(module)
    patches.wrap(module.MCPToolResolver, "_discover_mcp_tools", _discover)


def _forget(module: ModuleType) -> None:
    # CrewAI caches the answer for five minutes in a process; another process would ask again.
    module._mcp_schema_cache.clear()  # noqa: SLF001


_CLIENTS = ADAPTER.instrument("crewai.mcp.client", _of_clients)
_RESOLVERS = ADAPTER.instrument("crewai.mcp.tool_resolver", _of_resolvers)


def _connect(connect: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(connect)
    async def connected(self: Any) -> Any:
        if not in_session() or vars(self).get(_CONNECTED):
            return await connect(self)

        async def work(server: str) -> None:
            await connect(self)

        await acall(_leaf("connect", connect, "read"), work, (), {"server": _server(self)})
        setattr(self, _CONNECTED, True)
        return self

    return connected


def _disconnect(disconnect: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(disconnect)
    async def disconnected(self: Any) -> None:
        async def work(server: str) -> None:
            await disconnect(self)

        if in_session() and vars(self).pop(_CONNECTED, None):
            leaf = _leaf("disconnect", disconnect, "read")
            await acall(leaf, work, (), {"server": _server(self)})
        else:
            await disconnect(self)

    return disconnected


def _asking(name: str, effect: Effect | None, ask: Callable[..., Any]) -> Callable[..., Any]:
    leaf = _leaf(name, ask, effect)

    @wraps(ask)
    async def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        async def work(server: str, **changed: Any) -> Any:
            return await ask(self, **changed)

        if not in_session():
            return await ask(self, *args, **kwargs)
        named = dict(zip(_NAMES[name], args, strict=False)) | kwargs
        return await acall(leaf, work, (), {"server": _server(self), **named})

    return asked


_NAMES = {
    "list_tools": ["use_cache"],
    "list_prompts": [],
    "call_tool_result": ["tool_name", "arguments"],
    "get_prompt": ["prompt_name", "arguments"],
}


def _discover(discover: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method that lists the tools of a server given by its URL."""

    @wraps(discover)
    async def discovered(self: Any, server_url: str) -> Any:
        async def work(server: str) -> Any:
            return await discover(_Schemas(self), server_url)

        if not in_session():
            return await discover(self, server_url)
        asked = {"server": _address(server_url)}
        tools = await acall(_leaf("list_tools", discover, "read"), work, (), asked)
        for name, tool in tools.items():
            if tool["args_schema"] is not None:
                tool["args_schema"] = self._json_schema_to_pydantic(name, tool["args_schema"])
        return tools

    return discovered


class _Schemas:
    """A resolver that leaves schemas of arguments as the JSON that servers send."""

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resolver, name)

    def _json_schema_to_pydantic(self, _: str, json_schema: Any) -> Any:
        return json_schema


def _leaf(name: str, method: Callable[..., Any], effect: Effect | None) -> Leaf:
    return Leaf(f"mcp.{name}", method, Values(declared_by(method)), effect)


def _server(client: Any) -> str:
    transport = client.transport
    if (url := getattr(transport, "url", None)) is not None:
        return _address(url)
    return " ".join([str(getattr(transport, "command", "")), *getattr(transport, "args", ())])


def _address(url: str) -> str:
    """Return a server's URL without credentials and query, which may hold keys."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
