"""Serve the few calls of Docker's API that AutoGen makes; commands run on this machine.

There is no daemon where these tests run. The docker client is the real one, and so are its
connections: `DOCKER_HOST` names this server.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_CONTAINER = re.compile(r"/containers/(?P<id>[\w-]+)/(?P<what>\w+)")
_EXEC = re.compile(r"/exec/(?P<id>\w+)/(?P<what>\w+)")


@dataclass
class Docker:
    """What a daemon knows.

    Attributes:
        url: for DOCKER_HOST.
        asked: what it was asked for, but for its version.
        folder: what is mounted in its container.
        published: the port of this machine that its container's port leads to.
    """

    url: str = ""
    asked: list[str] = field(default_factory=list)
    folder: str = "."
    published: int = 0
    commands: list[list[str]] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    is_made: bool = False

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the JSON, or the bytes, of an answer."""
        if path == "/version":
            return 200, {"ApiVersion": "1.44"}
        self.asked.append(f"{method} {path}")
        if path.startswith("/images/"):
            return 200, {"Id": "sha256:1", "RepoTags": ["python:3-slim"]}
        if path == "/containers/create":
            self.is_made = True
            for mount in body["HostConfig"].get("Binds", ()):
                self.folder = mount.partition(":")[0]
            return 201, {"Id": "c1", "Warnings": []}
        if match := _CONTAINER.fullmatch(path):
            return self._container(match["what"], body)
        if match := _EXEC.fullmatch(path):
            number = int(match["id"]) - 1
            if match["what"] == "json":
                return 200, {"ExitCode": self.exits[number]}
            return 200, self._run(self.commands[number])
        return 404, {"message": f"no {path}"}

    def _container(self, what: str, body: Any) -> tuple[int, Any]:
        if what == "exec":
            self.commands.append(body["Cmd"])
            return 201, {"Id": str(len(self.commands))}
        if what != "json":
            return 204, b""
        if not self.is_made:
            return 404, {"message": "no such container"}
        ports = {"8888/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(self.published)}]}
        state, network = {"Status": "running"}, {"Ports": ports}
        return 200, {"Id": "c1", "State": state, "NetworkSettings": network, "Image": "sha256:1"}

    def _run(self, command: list[str]) -> bytes:
        done = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        self.exits.append(done.returncode)
        return struct.pack(">BxxxL", 1, len(done.stdout)) + done.stdout


@contextmanager
def docker_daemon() -> Iterator[Docker]:
    """Serve it until the block ends."""
    docker = Docker()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = re.sub(r"^/v[\d.]+(?=/)", "", self.path.partition("?")[0])
            asked = json.loads(body) if body else None
            status, answer = docker.answer(self.command, path, asked)
            self.send_response(status)
            if not isinstance(answer, bytes):
                self.send_header("Content-Type", "application/json")
                answer = json.dumps(answer).encode()
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    docker.url = f"tcp://127.0.0.1:{server.server_port}"
    try:
        yield docker
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
