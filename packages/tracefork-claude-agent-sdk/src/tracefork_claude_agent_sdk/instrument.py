"""Replace methods of the SDK while a session is open, and put them back when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_claude_agent_sdk import ADAPTER
from tracefork_core import TraceforkError
from tracefork_core.adapters import (
    Patches,
    current_step,
    end_step,
    is_crossing_seam,
    session_here,
)

_CONNECTION = "_tracefork_connection"
METHODS = ("connect", "write", "read_messages", "end_input", "close", "is_ready")
"""The methods of a transport."""


def connection_of(transport: Any) -> Any:
    """Return the connection of a transport that was made under a session; None without one."""
    return getattr(transport, "__dict__", {}).get(_CONNECTION)


def replaced(methods: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the methods of a transport as they are under a session.

    An attached transport has them twice, its own and those of its class. The connection belongs to
    the first ones that were called.
    """

    def connection_here(transport: Any) -> Any:
        connection = connection_of(transport)
        return connection if connection and connection.program.methods is methods else None

    @wraps(methods["connect"])
    async def connect(self: Any) -> None:
        session = None if is_crossing_seam() else session_here()
        if session is None:
            await methods["connect"](self)
        elif connection_of(self) is None:
            from tracefork_claude_agent_sdk.connection import Connection
            from tracefork_claude_agent_sdk.process import ClaudeCode

            vars(self)[_CONNECTION] = Connection(self, session, ClaudeCode(self, methods))

    @wraps(methods["write"])
    async def write(self: Any, data: str) -> None:
        connection = connection_here(self)
        await (connection.send(data) if connection else methods["write"](self, data))

    @wraps(methods["read_messages"])
    def read_messages(self: Any) -> AsyncIterator[Any]:
        connection = connection_here(self)
        messages: AsyncIterator[Any]
        messages = connection.messages() if connection else methods["read_messages"](self)
        return messages

    @wraps(methods["end_input"])
    async def end_input(self: Any) -> None:
        connection = connection_here(self)
        await (connection.end_input() if connection else methods["end_input"](self))

    @wraps(methods["close"])
    async def close(self: Any) -> None:
        if (connection := connection_here(self)) is None:
            await methods["close"](self)
            return
        try:
            await connection.close()
        finally:
            del vars(self)[_CONNECTION]

    @wraps(methods["is_ready"])
    def is_ready(self: Any) -> bool:
        return connection_here(self) is not None or bool(methods["is_ready"](self))

    made = (connect, write, read_messages, end_input, close, is_ready)
    return dict(zip(METHODS, made, strict=True))


def _of_transport(patches: Patches, module: ModuleType) -> None:
    transport = module.SubprocessCLITransport
    ours = replaced({name: getattr(transport, name, None) for name in METHODS})
    for name, method in ours.items():
        patches.replace(transport, name, method)


def _of_query(patches: Patches, module: ModuleType) -> None:
    def in_step(original: Any) -> Any:
        @wraps(original)
        async def handled(self: Any, request: Any) -> None:
            connection = connection_of(self.transport)
            if connection is None:
                await original(self, request)
                return
            asked = request.get("request") or {}
            step = connection.steps.begin_callback(asked)
            token = current_step.set(step or connection.steps.of_request(asked))
            try:
                # The SDK awaits no such task. The connection raises the error where it is read.
                with suppress(TraceforkError):
                    await original(self, request)
            finally:
                current_step.reset(token)
                end_step(step)

        return handled

    def recorded(original: Any) -> Any:
        @wraps(original)
        async def asked(self: Any, server: str, message: Any) -> Any:
            from tracefork_claude_agent_sdk import tools

            if connection_of(self.transport) is None or message.get("method") != tools.CALL:
                return await original(self, server, message)
            return await tools.called(original, self, server, message)

        return asked

    patches.wrap(module.Query, "_handle_control_request", in_step)
    patches.wrap(module.Query, "_handle_sdk_mcp_request", recorded)


_MODULES = (
    ADAPTER.instrument("claude_agent_sdk._internal.transport.subprocess_cli", _of_transport),
    ADAPTER.instrument("claude_agent_sdk._internal.query", _of_query),
)


def _put_in(patches: Patches, _: ModuleType) -> None:
    for module in _MODULES:
        patches.switch(module.on, module.off)


INSTRUMENT = ADAPTER.instrument("claude_agent_sdk", _put_in)
"""Every session applies it, once `claude_agent_sdk` is imported: see the entry point."""
