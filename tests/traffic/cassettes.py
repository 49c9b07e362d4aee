"""Read real provider traffic and serve it from a local server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

_HOP_BY_HOP = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Interaction:
    """One recorded request and its response, bodies as bytes."""

    source: str
    host: str
    method: str
    target: str
    request_headers: list[tuple[str, str]]
    request_body: bytes
    status: int
    response_headers: list[tuple[str, str]]
    response_body: bytes


def interactions(folder: Path) -> Iterator[Interaction]:
    """Yield every interaction of every cassette under `folder`, in a stable order."""
    for path in sorted(folder.rglob("*.y*ml")):
        for entry in yaml.load(path.read_bytes(), Loader=_LOADER).get("interactions", ()):
            if "request" not in entry:  # What a websocket carried.
                continue
            request, response = entry["request"], entry["response"]
            parts = urlsplit(request["uri"])
            yield Interaction(
                source=path.name,
                host=parts.hostname or "",
                method=request["method"],
                target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                request_headers=_headers(request["headers"]),
                request_body=_body(request),
                status=response["status"]["code"],
                response_headers=_headers(response["headers"]),
                response_body=_body(response),
            )


def _headers(recorded: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, values in recorded.items():
        if name.lower() in _HOP_BY_HOP or name.lower() in ("host", "accept-encoding"):
            continue
        several = values if isinstance(values, list) else [values]
        pairs.extend((name, str(value)) for value in several)
    return pairs


def _body(message: Mapping[str, Any]) -> bytes:
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"], ensure_ascii=False).encode()
    body = message.get("body")
    if isinstance(body, dict):
        body = body.get("string")
    if body is None:
        return b""
    return body if isinstance(body, bytes) else str(body).encode()


class CassetteServer:
    """Answers each request with the interaction that is `due`; streams event by event."""

    def __init__(self) -> None:
        self.due: Interaction | None = None
        self.served = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                interaction = server.take()
                server.served += 1
                self.send_response_only(interaction.status)
                for name, value in interaction.response_headers:
                    self.send_header(name, value)
                _send_body(self, interaction)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self) -> Interaction:
        """Return the interaction that answers the next request."""
        assert self.due is not None
        return self.due

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _send_body(handler: BaseHTTPRequestHandler, interaction: Interaction) -> None:
    body = interaction.response_body
    if not body.startswith((b"data:", b"event:")):
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for event in body.split(b"\n\n"):
        piece = event + b"\n\n"
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    handler.wfile.write(b"0\r\n\r\n")
