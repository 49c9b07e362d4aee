"""A local server that sends given answers, one chunk at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tracefork_core.providers import Answer

from .asked import Ask


@contextmanager
def served(reply: Callable[[Ask], Answer]) -> Iterator[str]:
    """Serve answers on a port of this machine and return its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            url = f"http://{self.headers['host']}{self.path}"
            self._send(reply(Ask(url, body, tuple(self.headers.items()))))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if any(name == "content-length" for name, _ in answer.headers):
                self.end_headers()
                self.wfile.write(answer.body)
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in (*answer.chunks, b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
