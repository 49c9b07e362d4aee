"""Claude Code itself, behind a transport: it starts when the first call is live."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from tracefork_core.adapters import crossing_seam

Methods = Mapping[str, Callable[..., Any]]
"""The methods of a transport as its class defines them, by name."""

_ALWAYS = frozenset({"--output-format", "--input-format", "--verbose"})
_SECRET_PARTS = frozenset({"env", "headers"})


class ClaudeCode:
    """The program that a transport talks to.

    Attributes:
        methods: the methods of the transport that lead to the program.
        is_started: whether it was started.
    """

    def __init__(self, transport: Any, methods: Methods) -> None:
        self._transport = transport
        self.methods = methods
        self.is_started = False

    async def start(self, resume: tuple[str, str] | None = None) -> None:
        """Start it.

        Args:
            resume: the session and its last answer that it continues from, on a branch.

        Raises:
            Exception: what the transport raises if that fails.
        """
        if resume is not None:
            session, answer = resume
            options = self._transport._options  # noqa: SLF001 - it has no other way
            extra = {**options.extra_args, "resume-session-at": answer}
            self._transport._options = dataclasses.replace(  # noqa: SLF001
                options, resume=session, fork_session=True, session_id=None, extra_args=extra
            )
        with crossing_seam():
            await self.methods["connect"](self._transport)
        self.is_started = True

    def can_resume(self) -> bool:
        """Return whether it can continue a session: a transport of the user's own cannot."""
        return dataclasses.is_dataclass(getattr(self._transport, "_options", None))

    async def write(self, line: Mapping[str, Any]) -> None:
        """Send a line."""
        await self.methods["write"](self._transport, json.dumps(line) + "\n")

    def lines(self) -> AsyncIterator[dict[str, Any]]:
        """Return the lines that it sends."""
        lines: AsyncIterator[dict[str, Any]] = self.methods["read_messages"](self._transport)
        return lines

    async def end_input(self) -> None:
        """Tell it that nothing more is sent."""
        if self.is_started:
            await self.methods["end_input"](self._transport)

    async def close(self) -> None:
        """Stop it, if it was started."""
        if self.is_started:
            await self.methods["close"](self._transport)


def options_of(transport: Any) -> dict[str, Any]:
    """Return the options that Claude Code is started with, as a replay compares them.

    The program's path and the folder that it works in are not among them, and no value of an
    environment variable or a header.
    """
    build = getattr(transport, "_build_command", None)
    if build is None:
        return {}
    before = transport._cli_path  # noqa: SLF001 - a replay needs no program
    transport._cli_path = before or "claude"  # noqa: SLF001
    try:
        words = build()[1:]
    finally:
        transport._cli_path = before  # noqa: SLF001
    return _by_name(words)


def environments_of(transport: Any) -> list[Mapping[str, str]]:
    """Return the environments that Claude Code and its MCP servers get from the options."""
    options = getattr(transport, "_options", None)
    servers = getattr(options, "mcp_servers", None)
    given = list(servers.values()) if isinstance(servers, dict) else []
    return [
        getattr(options, "env", None) or {},
        *(server.get("env") or {} for server in given if isinstance(server, dict)),
    ]


def _by_name(words: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, is_joined, value = word.partition("=")
            if name in _ALWAYS:
                continue
            options[name] = _value(name, value) if is_joined else True
        elif name not in _ALWAYS:
            known = options.get(name)
            options[name] = _value(name, word) if known is True else [known, word]
    return options


def _value(name: str, value: str) -> Any:
    if name != "--mcp-config" or not value.startswith("{"):
        return value
    servers = json.loads(value).get("mcpServers") or {}
    return {
        server: {part: given for part, given in config.items() if part not in _SECRET_PARTS}
        for server, config in servers.items()
    }
