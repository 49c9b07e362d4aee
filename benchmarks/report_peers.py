"""Record the same conversations with other tools. Imports nothing of tracefork: a peer runs it."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Samples, clean_environment
from conversations import conversations
from recorders import Recorder

if TYPE_CHECKING:
    import httpx2

_URL = "https://api.openai.com/v1/chat/completions"


def record_run(recorder: Recorder, many: int, path: str) -> Samples:
    """Record the conversations with a recorder."""
    import httpx2

    waiting: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind = {"content-type": "application/json"}
        return httpx2.Response(200, headers=kind, content=waiting.pop())

    transport = httpx2.MockTransport(answer)
    with recorder.record(Path(path)) as clients, clients.sync(transport) as client:
        for asked, answered in conversations(many):
            waiting.append(answered)
            client.post(_URL, content=asked)
    return {}


_AGENT = """\
import os
import sys
sys.path.insert(0, sys.argv[1])
import httpx2
from conversations import conversations

with httpx2.Client(timeout=60) as client:
    for asked, _ in conversations(int(sys.argv[2])):
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        client.post(url, content=asked, headers={"content-type": "application/json"})
"""


def share(python: Path, many: int, page: Path) -> None:
    """Record the conversations through timefork's proxy, and write its report."""
    folder = page.with_suffix("")
    folder.mkdir()
    (folder / "agent.py").write_text(_AGENT)
    here = str(Path(__file__).parent)
    with _model(many) as url:
        environment = {**clean_environment(), "TIMEFORK_UPSTREAM_OPENAI": url}
        agent = (str(python), "agent.py", here, str(many))
        for words in (
            ("init",),
            ("record", "--", *agent),
            ("share", "last", "-o", str(page)),
        ):
            timefork = str(python.with_name("timefork"))
            subprocess.run(
                [timefork, *words], check=True, capture_output=True, cwd=folder, env=environment
            )


@contextmanager
def _model(many: int) -> Iterator[str]:
    """Serve the answers, one after another."""
    answers = (answered for _, answered in conversations(many))

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = next(answers)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
