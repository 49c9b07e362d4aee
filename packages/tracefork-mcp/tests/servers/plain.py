"""An MCP server that imports nothing slow: it answers in ways that a framework's server does not.

    python plain.py COUNTER [NAME]

It appends a line to the file COUNTER when it starts, and one for each tool that it runs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

LOCK = threading.Lock()
WAITING: dict[str, list[Any]] = {}
TOOLS = {
    "now": {},
    "echo": {},
    "delay": {},
    "token": {},
    "guest": {},
    "fail": {},
    "refuse": {},
    "report": {},
    "ask": {},
    "form": {},
    "crash": {},
    "leave": {},
    "later": {},
    "note": {"readOnlyHint": False},
    "look": {"readOnlyHint": True},
}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return the result of a tool."""
    return {"content": [{"type": "text", "text": words}], **more}


def count(what: str) -> None:
    """Note that something happened."""
    with LOCK, Path(sys.argv[1]).open("a") as counter:
        counter.write(what + "\n")


def notify(method: str, **params: Any) -> None:
    """Send a notification."""
    send({"method": method, "params": params})


def ask_client(method: str, params: dict[str, Any]) -> Any:
    """Send a request to the client, and return its result."""
    number = f"server-{uuid.uuid4().hex[:8]}"
    arrived = threading.Event()
    WAITING[number] = [arrived, None]
    send({"id": number, "method": method, "params": params})
    arrived.wait(10)
    return WAITING.pop(number)[1]


def call(request: dict[str, Any]) -> None:
    """Run a tool, in a thread of its own."""
    params = request["params"]
    name, given = params["name"], params.get("arguments") or {}
    count(f"call {name}")
    answer = {"id": request["id"]}
    match name:
        case "echo" | "note" | "look":
            result = text(json.dumps(given, sort_keys=True))
        case "delay":
            time.sleep(given["seconds"])
            result = text(f"{given['tag']} {uuid.uuid4().hex}")
        case "token":
            result = text(f"the token is {os.environ['API_TOKEN']}")
        case "guest":
            invited = json.loads(os.environ.get("TRACEFORK_EGRESS", "{}")).get("invitation")
            result = text(f"invited: {bool(invited)}")
        case "fail":
            result = text(f"broken {uuid.uuid4().hex}", isError=True)
        case "refuse":
            error = {"code": -32050, "message": "not today", "data": {"until": time.time_ns()}}
            send({**answer, "error": error})
            return
        case "report":
            token = (params.get("_meta") or {}).get("progressToken")
            total = given.get("total", 3)
            for done in range(3):
                notify("notifications/progress", progressToken=token, progress=done, total=total)
            notify("notifications/message", level="info", data=f"log {uuid.uuid4().hex}")
            result = text("reported")
        case "ask":
            content = {"type": "text", "text": given.get("question", "2+2?")}
            messages = [{"role": "user", "content": content}]
            said = ask_client("sampling/createMessage", {"messages": messages, "maxTokens": 5})
            result = text(f"the client said {said['content']['text']} {uuid.uuid4().hex}")
        case "form":
            asked = {"type": "object", "properties": {"city": {"type": "string"}}}
            params = {"message": "Which city?", "requestedSchema": asked}
            filled = ask_client("elicitation/create", params)["content"]
            result = text(f"the client filled in {filled} {uuid.uuid4().hex}")
        case "crash":
            os._exit(3)
        case "leave":
            send({**answer, "result": text("goodbye")})
            os._exit(0)
        case "later":
            send({**answer, "result": text("wait for it")})
            for _ in range(given["count"]):
                time.sleep(0.05)
                notify("notifications/message", level="info", data=f"log {uuid.uuid4().hex}")
            return
        case _:
            result = text(f"{time.time_ns()} {uuid.uuid4().hex} ü\u2028")
    send({**answer, "result": result})


def handle(message: dict[str, Any]) -> None:
    """Handle one message of the client."""
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": (sys.argv[2:] or ["plain"])[0], "version": str(os.getpid())}
        capabilities = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        send({"id": number, "result": result})
    elif method == "tools/list":
        schema = {"type": "object"}
        tools = [{"name": n, "inputSchema": schema, "annotations": a} for n, a in TOOLS.items()]
        send({"id": number, "result": {"tools": tools}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(message,), daemon=True).start()
    elif method is None and number in WAITING:
        WAITING[number][1] = message.get("result") or message.get("error")
        WAITING[number][0].set()
    elif method is not None and number is not None:
        error = {"code": -32601, "message": "Method not found"}
        send({"id": number, "error": error})


if __name__ == "__main__":
    count("start")
    for line in sys.stdin:
        handle(json.loads(line))
