"""Record the tools that run in the agent's process, on MCP servers of the SDK."""

from __future__ import annotations

from typing import Any

from tracefork_core.adapters import FrameworkValues, atool_exchange

CALL = "tools/call"


class _Values(FrameworkValues):
    """The answer of a server, which is JSON already."""

    tag = "claude-agent-sdk"

    def said(self, text: str) -> object:
        """Return the answer of a server whose tool returns a text."""
        return {"result": {"content": [{"type": "text", "text": text}], "isError": False}}


async def called(original: Any, query: Any, server: str, message: dict[str, Any]) -> Any:
    """Return the answer of a server to the call of a tool, live or from the tape."""
    params = message.get("params") or {}

    async def run(**arguments: Any) -> object:
        changed = {**message, "params": {**params, "arguments": arguments}}
        answer = await original(query, server, changed)
        return {part: answer[part] for part in ("result", "error") if part in answer}

    name, arguments = f"{server}/{params.get('name')}", params.get("arguments") or {}
    answer = await atool_exchange(name, arguments, run, _Values())
    return {"jsonrpc": "2.0", "id": message.get("id"), **answer}  # type: ignore[dict-item]
