"""A server of the Responses API that answers with any items, also those of hosted tools."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def said(text: str) -> dict[str, Any]:
    """Return an item that is a message of the model."""
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "role": "assistant", "status": "completed"}
    return {**message, "id": "msg_1", "content": [part]}


class ItemsServer:
    """Answers its n-th request with the n-th list of items, and keeps what it was asked."""

    def __init__(self, url: str, stop: Any) -> None:
        self.url = url
        self.stop = stop
        self.answers: list[list[dict[str, Any]]] = []
        self.requests: list[Any] = []


@contextmanager
def serving() -> Iterator[ItemsServer]:
    """Serve on a port of loopback until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            items.requests.append(asked)
            number = len(items.requests)
            body = {
                "id": f"resp_{number}",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": asked["model"],
                "output": items.answers[min(number, len(items.answers)) - 1],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            }
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    items = ItemsServer(f"http://127.0.0.1:{server.server_port}/v1", server.shutdown)
    try:
        yield items
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
