"""An MCP server that imports nothing slow: one JSON-RPC message per line, in and out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a message; None if it needs no answer."""
    match message["method"], message.get("params") or {}:
        case "initialize", {"protocolVersion": version}:
            server = {"name": "s", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}}
            result["serverInfo"] = server
        case "tools/list", _:
            tool = {"description": "Double it.", "inputSchema": SCHEMA}
            result = {"tools": [{"name": name, **tool} for name in ("double", "break")]}
        case "tools/call", {"name": name, "arguments": {"a": a}}:
            text = [{"type": "text", "text": f"twice {a} is {2 * a}"}]
            result = {"content": text, "isError": name == "break"}
        case _:
            return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def main() -> None:
    """Note that a process was started, and answer each message."""
    with Path(sys.argv[1]).open("a") as started:
        started.write("started\n")
    for line in sys.stdin:
        if (told := answer(json.loads(line))) is not None:
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
