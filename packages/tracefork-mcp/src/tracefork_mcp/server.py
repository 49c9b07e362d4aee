"""What is known about one server: its name on the tape, and the effects of its tools."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlsplit

from tracefork_core.adapters import Effect
from tracefork_mcp.effects import effect_of_tool
from tracefork_mcp.messages import Message

_ODD = re.compile(r"[^\w.-]+")
_LAUNCHER = re.compile(r"(python|pypy|node|npx|bunx?|deno|uvx?|pipx)[\d.]*(\.exe)?")
"""Programs that run a script or a package, whose name says more."""
_MOST = 60
_INFO = "io.modelcontextprotocol/serverInfo"
_HINT = "readOnlyHint"
TOOL_CALL = "tools/call"
_LIST_TOOLS = "tools/list"


class Server:
    """One server, as far as its answers have told.

    `name` is that of its program or host until the server says its own. Neither holds a secret:
    arguments, paths, ports, users and queries stay out. `environment` is what its program is given.
    """

    def __init__(self, target: object = "", *, name: str = "") -> None:
        self.name = _plain(name or _first_name(target)) or "server"
        self.environment: dict[str, str] = getattr(target, "env", None) or {}
        self._hints: dict[str, bool] = {}

    def hear(self, method: str, message: Message) -> None:
        """Learn from a response to a request with this method."""
        result = message.get("result")
        if not isinstance(result, dict):
            return
        if method in ("initialize", "server/discover"):
            meta = result.get("_meta")
            info = result.get("serverInfo") or (meta.get(_INFO) if isinstance(meta, dict) else None)
            name = info.get("name") if isinstance(info, dict) else None
            if isinstance(name, str) and _plain(name):
                self.name = _plain(name)
        elif method == _LIST_TOOLS:
            tools = result.get("tools")
            for tool in tools if isinstance(tools, list) else ():
                hints = tool.get("annotations") if isinstance(tool, dict) else None
                if isinstance(hints, dict) and isinstance(hint := hints.get(_HINT), bool):
                    self._hints[str(tool.get("name"))] = hint

    def url(self, message: Message) -> str:
        """Return where a message goes: "mcp:github/create_issue" for a tool or a prompt."""
        name = (message.get("params") or {}).get("name")
        named = f"/{quote(name)}" if isinstance(name, str) and name else ""
        return f"mcp:{self.name}{named}"

    def step(self, message: Message) -> tuple[str, str]:
        """Return the kind and the name of the step for a request."""
        params = message.get("params") or {}
        if message["method"] == TOOL_CALL:
            return "tool", f"{self.name}.{params.get('name')}"
        uri = params.get("uri")
        what = params.get("name") or (uri if isinstance(uri, str) else None)
        return "mcp", f"{self.name}.{what or message['method']}"

    def effect(self, message: Message) -> Effect | None:
        """Return the side effect of a message; None if it is unknown."""
        if message.get("method") != TOOL_CALL:
            return "read"
        name = str((message.get("params") or {}).get("name"))
        return effect_of_tool(self.name, name, self._hints.get(name))


def _first_name(target: Any) -> str:
    command = getattr(target, "command", None)
    if isinstance(command, str):
        name, words = PurePath(command).name, list(getattr(target, "args", ()))
        scripts = [word for word in words if word[:1] != "-"]
        if not _LAUNCHER.fullmatch(name) or not scripts or "-c" in words:
            return name
        return PurePath(scripts[0]).name
    return urlsplit(str(target)).hostname or ""


def _plain(name: str) -> str:
    return _ODD.sub("-", name.strip())[:_MOST].strip("-")
