"""Vertex AI is recorded with a key file of Google's, and replayed without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import google.auth
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.adk.models import Gemini
from google.genai import types

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

TOKEN = "ya29.a-token-of-vertex-4711"


class _Tokens(BaseHTTPRequestHandler):
    """The host that gives tokens for what a key file signs."""

    def do_POST(self) -> None:
        """Give a token."""
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())
        self.server.given += 1  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The default credentials of this machine: a key file, and a host that takes it."""
    server = HTTPServer(("127.0.0.1", 0), _Tokens)
    server.given = 0  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "the-project",
        "client_email": "agent@example.com",
        "private_key": pem.decode(),
        "token_uri": f"http://127.0.0.1:{server.server_port}/token",
    }
    file = tmp_path / "key.json"
    file.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    server.server_close()


def gemini(url: str) -> Any:
    """Ask Gemini on Vertex AI."""
    place = {"vertexai": True, "project": "the-project", "location": "us-east5"}
    options = types.HttpOptions(base_url=url)
    return Gemini(model="gemini-2.5-flash", client_kwargs={**place, "http_options": options})


def claude(url: str) -> Any:
    """Ask Claude on Vertex AI."""
    from anthropic import AsyncAnthropicVertex
    from google.adk.models.anthropic_llm import Claude

    client = AsyncAnthropicVertex(base_url=f"{url}/v1", region="us-east5", project_id="the-project")
    return Claude(model="claude-sonnet-4-5", client=client)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", [gemini, claude])
def test_vertex_replays_without_credentials(
    model: Callable[[str], Any],
    stream: bool,
    server: ProviderServer,
    tokens: Any,
    twice: Callable[..., tuple[Any, Any]],
    ask: Callable[..., list[str]],
    tape: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No metadata server is asked for them. The tape has the calls of the model and no token."""
    url = server.url

    def take_away() -> None:
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
        tokens.shutdown()

    recorded, again = twice(lambda: ask(model(url), stream=stream), keys=(), between=take_away)
    assert again == recorded
    assert tokens.given == 1
    with tracefork.Tape.open(tape) as opened:
        bodies = [one.request_body + one.response_body for one in opened.exchanges]
        assert "projects/the-project/" in opened.exchanges[0].url
    assert TOKEN.encode() not in tape.read_bytes() + b"".join(bodies)
    assert [one.header("authorization") for one in server.requests] == [f"Bearer {TOKEN}"] * 2


def test_the_project_of_the_credentials_is_that_of_the_recording(
    tokens: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests have it in their paths. A fork needs real credentials from its fork point on."""
    with tracefork.record(tape):
        assert google.auth.default()[1] == "the-project"
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    with tracefork.replay(tape):
        credentials, project = google.auth.default()
        credentials.refresh(None)
    assert (project, credentials.token) == ("the-project", "tracefork-replay")


def test_a_run_without_credentials_replays_as_one(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the recorded one, even where this machine has credentials."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))

    def look() -> str:
        with pytest.raises(google.auth.exceptions.DefaultCredentialsError) as caught:
            google.auth.default()
        return str(caught.value)

    with tracefork.record(tape):
        recorded = look()
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    with tracefork.replay(tape):
        assert look() == recorded
