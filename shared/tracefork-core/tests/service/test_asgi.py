"""A FastAPI service under uvicorn keeps the tapes of its failed requests, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import httpx2
import msgspec
import pytest

from tracefork_core import DivergenceError, Recorder, Tape, replay
from tracefork_core.masking.masking import Masking
from tracefork_core.service.handler import Answer, ask
from tracefork_testkit import ProviderServer

from ..run.asking import asked_on
from .serving import kept, served
from .shop import shop

SECRET = "sk-live-4711-abcdefghij"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the recorder, which makes it."""
    return tmp_path / "tapes"


@pytest.fixture
def web(http: httpx2.Client, provider: ProviderServer, folder: Path) -> Iterator[httpx2.Client]:
    """Yield a client of a service that keeps what failed."""
    with served(shop(provider.url, Recorder(folder))) as url:
        http.base_url = httpx2.URL(url)
        yield http


@pytest.mark.parametrize("route", ["chat", "sync"])
@pytest.mark.parametrize(
    ("then", "status", "outcome"), [("raise", 500, "LookupError"), ("503", 503, "503")]
)
def test_a_failed_request_leaves_one_tape(
    web: httpx2.Client, folder: Path, route: str, then: str, status: int, outcome: str
) -> None:
    """Its name says when, what and who; it holds the request and the exchanges."""
    headers = {"X-Request-ID": "order/17", "Authorization": f"Bearer {SECRET}"}
    answer = web.post(
        f"/{route}/ann?then={then}&token={SECRET}", json={"texts": ["a", "b"]}, headers=headers
    )
    assert answer.status_code == status
    (path,) = kept(folder, 1)
    assert path.name.endswith(f"-POST-{route}-customer_order-17.tape")
    assert asked_on(path) == ["a", "b"]
    with Tape.open(path) as tape:
        served = tape.served
        assert served is not None
        assert served.outcome == outcome
        assert (served.name, served.method) == (f"POST /{route}/{{customer}}", "POST")
        assert served.target == f"/{route}/ann?then={then}&token=*"
        assert json.loads(served.body or b"") == {"texts": ["a", "b"]}
        assert dict(served.headers)["authorization"] == "*"
        assert served.status == (503 if then == "503" else None)
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("then", ["", "404"])
@pytest.mark.parametrize("route", ["chat", "sync"])
def test_a_request_that_did_not_fail_leaves_nothing(
    web: httpx2.Client, folder: Path, provider: ProviderServer, route: str, then: str
) -> None:
    """The model was asked. The control, which is asked later, fails and leaves its tape."""
    answer = web.post(f"/{route}/ann?then={then}", json={"texts": ["a"]})
    assert answer.status_code == int(then or 200)
    assert len(provider.requests) == 1
    web.post(f"/{route}/ann?then=raise", json={"texts": ["control"]})
    (path,) = kept(folder, 1)
    assert asked_on(path) == ["control"]


def test_fifty_requests_at_once_are_kept_apart(web: httpx2.Client, folder: Path) -> None:
    """Every third one fails, and its tape holds its own exchanges alone."""

    def post(n: int) -> int:
        then = "raise" if n % 3 == 0 else ""
        texts = [f"{n} one", f"{n} two"]
        url = f"{web.base_url}/chat/{n}?then={then}"
        return httpx2.post(url, json={"texts": texts}, verify=False, timeout=60).status_code

    with ThreadPoolExecutor(50) as pool:
        statuses = list(pool.map(post, range(50)))
    failed = [n for n in range(50) if n % 3 == 0]
    assert [n for n, status in enumerate(statuses) if status == 500] == failed
    found = {asked[0]: asked for asked in map(asked_on, kept(folder, len(failed)))}
    assert found == {f"{n} one": [f"{n} one", f"{n} two"] for n in failed}


@pytest.mark.parametrize("route", ["stream", "plain-stream", "background"])
def test_a_failure_after_the_head_of_the_response_counts(
    web: httpx2.Client, folder: Path, route: str
) -> None:
    """Streams and background tasks are part of their request. The control succeeds."""
    assert web.get(f"/{route}?text=fine").status_code == 200
    try:
        web.get(f"/{route}?text=bad&then=raise")
    except httpx2.HTTPError:
        assert route != "background"
    (path,) = kept(folder, 1)
    assert asked_on(path) == (["bad", "again"] if route == "background" else ["bad"])
    with Tape.open(path) as tape:
        assert tape.served is not None
        assert tape.served.status == 200
        assert tape.served.outcome == "LookupError"


def test_a_client_that_leaves_is_no_failure(web: httpx2.Client, folder: Path) -> None:
    """The control fails by itself."""
    with web.stream("GET", "/stream?text=left") as answer:
        next(answer.iter_bytes())
    assert web.post("/chat/ann?then=raise", json={"texts": ["a"]}).status_code == 500
    (path,) = kept(folder, 1)
    assert asked_on(path) == ["a"]


def test_the_lane_of_a_sync_route_does_not_tell_how_old_its_thread_is(
    web: httpx2.Client, folder: Path
) -> None:
    """A replay has new threads; a service's threads have served other requests before."""
    for _ in range(3):
        assert web.post("/sync/ann?then=mark", json={"texts": ["a"]}).status_code == 200
        time.sleep(0.01)
    lanes = set()
    for path in kept(folder, 3):
        with Tape.open(path) as tape:
            lanes |= {exchange.aside.lane for exchange in tape.exchanges}
    assert len(lanes) == 1


async def test_a_websocket_passes_through(
    web: httpx2.Client, folder: Path, provider: ProviderServer
) -> None:
    """It talks to the model, fails, and is on no tape. The control is a request that fails."""
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{web.base_url}/talk") as talk:
            await talk.send_str("hello")
            assert (await talk.receive()).data == "hello"
            await talk.receive()
    assert len(provider.requests) == 1
    assert web.post("/chat/ann?then=raise", json={"texts": ["a"]}).status_code == 500
    (path,) = kept(folder, 1)
    assert asked_on(path) == ["a"]


def test_a_marked_request_is_kept_although_it_succeeded(web: httpx2.Client, folder: Path) -> None:
    """The label lies beside the tape."""
    assert web.post("/chat/ann?then=mark", json={"texts": ["a"]}).status_code == 200
    (path,) = kept(folder, 1)
    assert path.with_name(f"{path.name}.mark").read_text() == "thumbs-down\n"
    with Tape.open(path) as tape:
        assert tape.served is not None
        assert (tape.served.outcome, tape.served.status) == ("ok", 200)


@pytest.mark.parametrize("route", ["chat/ann", "sync/ann"])
def test_the_handler_runs_again_from_its_tape(
    web: httpx2.Client, folder: Path, provider: ProviderServer, route: str
) -> None:
    """It gets the request that it got then, and answers as then. A changed body diverges."""
    web.post(f"/{route}?then=mark", json={"texts": ["a", "b"]})
    (path,) = kept(folder, 1)
    before = len(provider.requests)
    app, answer = shop(provider.url, Recorder(folder)), Answer()
    with Tape.open(path) as tape:
        request = tape.served
        assert request is not None
    with replay(path, scope="process") as again:
        ask(app, request, [], answer)
    assert again.exchanges == 2
    assert (answer.status, answer.digest(Masking())) == (200, request.answer)
    with pytest.raises(DivergenceError), replay(path, scope="process"):
        ask(app, msgspec.structs.replace(request, text='{"texts": ["c"]}'), [], Answer())
    assert len(provider.requests) == before
    kept(folder, 1)
