"""A Flask service under a real WSGI server keeps the tapes of its failed requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import flask
import httpx2
import pytest

from tracefork_core import DivergenceError, Recorder, Tape, replay
from tracefork_core.masking.masking import Masking
from tracefork_core.service.handler import Answer
from tracefork_core.service.handler import ask as ask_app
from tracefork_testkit import ProviderServer

from ..run.asking import ask, asked_on
from .serving import kept


def shop(url: str, recorder: Recorder) -> flask.Flask:
    """Return an app that asks a model for each word of a body, in its route or in a stream."""
    app = flask.Flask("shop")

    @app.post("/chat/<customer>")
    def chat(customer: str) -> flask.Response | tuple[str, int]:
        words = flask.request.get_data(as_text=True).split()
        then = flask.request.args.get("then", "")

        def answers() -> Iterator[str]:
            for word in words:
                yield ask(url, word) + " "
            if then == "raise":
                raise LookupError(customer)

        if "stream" in flask.request.args:
            return flask.Response(flask.stream_with_context(answers()))
        text = "".join(answers())
        if then == "mark":
            recorder.current().mark("odd")
        return (text, int(then)) if then.isdigit() else flask.Response(text)

    app.wsgi_app = recorder.wsgi(app.wsgi_app)  # type: ignore[method-assign]
    return app


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def log_exception(self, *_: object) -> None:
        """Say nothing."""


class _Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a stream that raised."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tapes"


@pytest.fixture
def web(http: httpx2.Client, provider: ProviderServer, folder: Path) -> Iterator[httpx2.Client]:
    """Yield a client of the service, with a thread for each connection."""
    app = shop(provider.url, Recorder(folder))
    server = make_server("127.0.0.1", 0, app, _Threads, _Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    http.base_url = httpx2.URL(f"http://127.0.0.1:{server.server_port}")
    yield http
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.parametrize("way", ["", "&stream"])
def test_a_failed_request_leaves_a_tape_and_another_one_nothing(
    web: httpx2.Client, folder: Path, way: str
) -> None:
    """An exception in the route becomes a 500; one in a stream comes after the head."""
    assert web.post(f"/chat/ann?{way}", content="fine").text == "fine "
    with suppress(httpx2.HTTPError):
        web.post(f"/chat/ann?then=raise{way}", content="a b", headers={"X-Request-ID": "7"})
    (path,) = kept(folder, 1)
    assert path.name.endswith("-POST-chat-customer_7.tape")
    assert asked_on(path) == ["a", "b"]
    with Tape.open(path) as tape:
        assert tape.served is not None
        assert tape.served.text == "a b"
        assert tape.served.status == (200 if way else 500)
        assert tape.served.outcome == ("LookupError" if way else "500")


def test_a_request_to_a_wsgi_app_runs_again_from_its_tape(
    web: httpx2.Client, folder: Path, provider: ProviderServer
) -> None:
    """It answers as then, and asks no model. A changed body diverges."""
    assert web.post("/chat/ann%20b?then=mark&x=%C3%A9", content="a b").text == "a b "
    (path,) = kept(folder, 1)
    asked = len(provider.requests)
    app = shop(provider.url, Recorder(folder))
    with Tape.open(path) as tape:
        served = tape.served
        assert served is not None
    answer = Answer()
    with replay(path, scope="process") as again:
        ask_app(app, served, [], answer)
    assert (again.exchanges, answer.status, answer.text) == (2, 200, "a b ")
    assert answer.digest(Masking()) == served.answer
    changed = type(served)(
        **{**{f: getattr(served, f) for f in served.__struct_fields__}, "text": "c"}
    )
    with pytest.raises(DivergenceError), replay(path, scope="process"):
        ask_app(app, changed, [], Answer())
    assert len(provider.requests) == asked
