"""What is known about one server: its name on the tape, and the effects of its tools."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlsplit

from tracefork_mcp.messages import Message

_ODD = re.compile(r"[^\w.-]+")
_MOST = 60
_INFO = "io.modelcontextprotocol/serverInfo"
TOOL_CALL = "tools/call"
_LIST_TOOLS = "tools/list"


class Server:
    """One server, as far as its answers have told.

    `name` is that of its program or host until the server says its own. Neither holds a secret:
    arguments, paths, ports, users and queries stay out.
    """

    def __init__(self, target: object) -> None:
        self.name = _plain(_first_name(target))
        self._is_write: set[str] = set()

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
                if (
                    isinstance(tool, dict)
                    and (tool.get("annotations") or {}).get("readOnlyHint") is False
                ):
                    self._is_write.add(str(tool.get("name")))

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

    def effect(self, message: Message) -> Any:
        """Return the side effect of a message; None if it is unknown."""
        if message.get("method") != TOOL_CALL:
            return "read"
        # The hint is the server's own word: it may warn, and is not believed when it calms.
        name = str((message.get("params") or {}).get("name"))
        return "write" if name in self._is_write else None


def _first_name(target: object) -> str:
    command = getattr(target, "command", None)
    if isinstance(command, str):
        return PurePath(command).name
    return urlsplit(str(target)).hostname or "server"


def _plain(name: str) -> str:
    return _ODD.sub("-", name.strip())[:_MOST].strip("-")
