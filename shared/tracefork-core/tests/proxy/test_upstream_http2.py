"""Upstream servers that speak HTTP/2 over TLS, while the program speaks HTTP/1.1."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
import trustme

from ..cli.conftest import Shell
from ..seams.test_http2 import PIECES, serve
from .conftest import exchanges, standalone


@pytest.fixture
def upstream(shell: Shell, tmp_path: Path) -> Iterator[str]:
    """Serve HTTP/2 over TLS, with a certificate that the shell's programs trust."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    shell.environment["SSL_CERT_FILE"] = str(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    secured = context.wrap_socket(connection, server_side=True)
                    threading.Thread(target=serve, args=(secured,), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        yield f"https://localhost:{listening.getsockname()[1]}"


def test_an_http2_server_is_recorded_and_replayed(
    shell: Shell, upstream: str, http: httpx2.Client
) -> None:
    """The program gets every event over HTTP/1.1; the tape names the version of the server."""
    seen = []
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape", f"--upstream=two={upstream}") as proxy:
            address = proxy.address.replace("/anthropic", "/two")
            response = http.get(f"{address}/events")
            seen.append((response.status_code, response.headers["x-at"], response.content))
            code, printed = proxy.ended()
            assert code == 0, printed
    assert seen == [(200, "1", b"".join(PIECES))] * 2
    (exchange,) = exchanges(shell.folder / "run.tape")
    assert exchange.aside.http_version == "HTTP/2"


def test_a_stream_that_is_reset_breaks_off(
    shell: Shell, upstream: str, http: httpx2.Client
) -> None:
    """A reset in the middle of a body is no end of the body for the program."""
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape", f"--upstream=two={upstream}") as proxy:
            address = proxy.address.replace("/anthropic", "/two")
            with pytest.raises(httpx2.RemoteProtocolError):
                http.get(f"{address}/reset")
            assert proxy.ended()[0] == 0
    (exchange,) = exchanges(shell.folder / "run.tape")
    assert exchange.end == "failed"
