"""Start `tracefork view` as a user does, and ask it as a browser does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

from .conftest import Shell

COLUMNS = ("kind", "label", "gist", "lane", "step", "started", "took", "tokens_in", "message")


class Viewer:
    """A running `tracefork view`."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tracefork_core", "view", *words, "--json"],
            cwd=shell.folder,
            env=shell.full_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            told += line
        self.document: dict[str, Any] = json.loads(told)
        self.address: str = self.document["address"]
        self.url = f"http://127.0.0.1:{self.document['port']}"
        self.client = httpx2.Client(base_url=self.url, verify=False, timeout=30)

    def enter(self) -> httpx2.Client:
        """Open the address that was printed, as a browser that keeps cookies."""
        assert self.client.get(self.address, follow_redirects=True).status_code == 200
        return self.client

    def stop(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what was printed on stderr."""
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said

    @contextmanager
    def run(self, tape: str, **more: str) -> Iterator[Growing]:
        """Follow a run, as the page does."""
        with self.client.stream("GET", "/api/run", params={"tape": tape} | more) as response:
            assert response.status_code == 200, response.read()
            yield Growing(events(response))


def events(response: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """Yield the events of a stream."""
    name = ""
    for line in response.iter_lines():
        word, _, rest = line.partition(": ")
        if word == "event":
            name = rest
        elif word == "data":
            yield name, json.loads(rest)


class Growing:
    """The rows of the runs of a page, put together as the page does."""

    def __init__(self, told: Iterator[tuple[str, Any]]) -> None:
        self._told = told
        self.names: list[str] = []
        self.growths: dict[int, dict[str, Any]] = {}
        self.indices: dict[int, dict[str, Any]] = {}
        self.compared: dict[str, Any] | None = None

    def until(self, there: Callable[[Growing], bool]) -> None:
        """Read events until something is there."""
        while not there(self):
            name, data = next(self._told)
            if name == "runs":
                self.names = data["runs"]
            elif name == "compared":
                self.compared = data
            else:
                self._grow(data["number"], data["growth"])

    def _grow(self, number: int, growth: dict[str, Any]) -> None:
        before = self.growths.get(number)
        self.growths[number] = growth
        new, start = growth["index"], growth["from"]
        if new is None:
            return
        if before is None or before["recording"] != growth["recording"]:
            self.indices[number] = {"steps": []} | {name: [] for name in COLUMNS}
        index = self.indices[number]
        for name in COLUMNS:
            index[name] = index[name][:start] + new[name]
        for place, step in growth["steps"]:
            index["steps"][place:] = [step, *index["steps"][place + 1 :]]

    def rows(self, number: int = 0) -> int:
        """Return how many rows a run has."""
        return len(self.indices.get(number, {"kind": []})["kind"])


@contextmanager
def held_server() -> Iterator[tuple[str, threading.Event]]:
    """Serve answers; one to `/held` comes when the event is set."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/held":
                released.wait(60)
            self.send_response(200)
            self.send_header("content-length", str(len(asked)))
            self.end_headers()
            with suppress(OSError):  # A killed agent has hung up.
                self.wfile.write(asked)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", released
    finally:
        released.set()
        server.shutdown()
        server.server_close()


def recording(shell: Shell, *words: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a recording, and do not wait for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tracefork_core", "record", *words],
        cwd=shell.folder,
        env=shell.full_environment(**environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
