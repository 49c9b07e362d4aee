"""The command line knows the tapes of a service: ls, gc, replay, verify and fork."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import Recorder, Tape, record
from tracefork_core.tape.integrity import check_integrity
from tracefork_testkit import ProviderServer

from ..service.serving import kept
from .conftest import Shell

SHOP = """
import os
import time

import httpx2
from fastapi import FastAPI, Header, HTTPException, Request

from tracefork_core import Recorder

recorder = Recorder(os.environ["TAPES"], keep="all")
app = FastAPI()
app.add_middleware(recorder.asgi)
URL = os.environ["PROVIDER"] + "/v1/chat/completions"


def ask(text):
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": f"@say {text}"}]}
    answer = httpx2.post(URL, json=body, verify=False)
    return answer.json()["choices"][0]["message"]["content"]


@app.post("/chat/{customer}")
def chat(customer: str, body: dict, authorization: str = Header("")):
    if authorization != "Bearer sesame":
        raise HTTPException(401)
    answers = [ask(text) for text in body["texts"]]
    if customer == "bob":
        raise LookupError("no such customer")
    if customer == "slow":
        time.sleep(60)
    return {"answers": answers, "version": os.environ.get("VERSION", "1")}
"""


def post(url: str, customer: str, texts: list[str], key: str = "sesame") -> int:
    """Ask the service, and return the status of its response."""
    headers = {"Authorization": f"Bearer {key}", "X-Request-ID": f"id-{customer}"}
    answer = httpx2.post(
        f"{url}/chat/{customer}", json={"texts": texts}, headers=headers, verify=False, timeout=30
    )
    return answer.status_code


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell beside the tapes of a service with two workers, which was killed."""
    folder = tmp_path_factory.mktemp("shop")
    home = tmp_path_factory.mktemp("home")
    environment = {"PROVIDER": provider.url, "TAPES": str(folder / "tapes")}
    found = Shell(folder, {**environment, "TRACEFORK_HOME": str(home)})
    found.write("shop.py", SHOP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["uvicorn", "shop:app", "--workers", "2", "--port", str(port)]
    service = subprocess.Popen(
        [sys.executable, "-m", *words, "--log-level", "critical"],
        cwd=folder,
        env=found.full_environment(),
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(12) as pool:
        try:
            _wait_for(port)
            assert post(url, "mallory", ["x"], key="guessed") == 401
            statuses = list(pool.map(lambda n: post(url, f"ann-{n}", [f"{n}", "b"]), range(8)))
            assert statuses == [200] * 8
            assert post(url, "bob", ["a", "b"]) == 500
            tapes = kept(folder / "tapes", 10)
            slow = pool.submit(post, url, "slow", ["in flight"])
            asked = len(provider.requests)
            while not any(b"in flight" in request.body for request in provider.requests):
                time.sleep(0.01)
            assert asked
        finally:
            os.killpg(service.pid, signal.SIGKILL)
            service.wait()
        with pytest.raises(httpx2.HTTPError):
            slow.result()
    assert kept(folder / "tapes", 10) == tapes
    return found


def _wait_for(port: int) -> None:
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise AssertionError("the service did not start")


def tape_of(shop: Shell, customer: str) -> str:
    """Return the path of the tape of a customer's request, as a user would type it."""
    (path,) = (shop.folder / "tapes").glob(f"*_id-{customer}.tape")
    return f"tapes/{path.name}"


def test_a_killed_service_leaves_whole_tapes_of_all_that_had_ended(shop: Shell) -> None:
    """Both workers wrote some, and nothing is left of the request in flight."""
    paths = sorted((shop.folder / "tapes").iterdir())
    assert [check_integrity(path).damage for path in paths] == [[]] * 10
    for path in paths:
        with Tape.open(path) as tape:
            assert tape.complete
            assert len(tape.exchanges) == (0 if "mallory" in path.name else 2)


def test_ls_shows_how_requests_ended_and_what_is_marked(shop: Shell) -> None:
    """The mark was set after the service was gone."""
    assert Recorder(shop.folder / "tapes").mark("id-ann-3", "thumbs-down")
    done = shop.tracefork("ls", "tapes", "--json")
    found = {entry["name"]: entry for entry in done.document["tapes"]}
    bob, ann = (found[tape_of(shop, name).removeprefix("tapes/")] for name in ("bob", "ann-3"))
    assert (bob["outcome"], bob["served"], bob["mark"]) == (
        "LookupError",
        "POST /chat/{customer}",
        None,
    )
    assert (ann["outcome"], ann["mark"]) == ("ok", "thumbs-down")
    shown = shop.tracefork("ls", "tapes").out
    assert "LookupError" in shown
    assert "marked thumbs-down" in shown


def test_a_request_replays_in_its_app(shop: Shell, provider: ProviderServer) -> None:
    """Sync handler, two calls of a model, no socket; the header is the caller's to give."""
    asked = len(provider.requests)
    words = ["--app", "shop:app", "--header", "Authorization: Bearer sesame"]
    done = shop.tracefork("replay", tape_of(shop, "ann-1"), *words, "--json")
    assert done.exit == 0, done.err
    assert done.document["exchanges"] == 2
    assert done.document["bit_exact"]
    assert done.document["response"] == {"recorded": 200, "now": 200, "same_body": True}
    assert len(provider.requests) == asked
    assert len(list((shop.folder / "tapes").glob("*.tape"))) == 10


def test_a_request_that_failed_fails_again(shop: Shell) -> None:
    """That is what its tape is for."""
    words = ["--app", "shop:app", "--header", "Authorization: Bearer sesame"]
    done = shop.tracefork("replay", tape_of(shop, "bob"), *words)
    assert done.exit == 0, done.err
    assert "LookupError, as it did in the recording" in done.err


def test_a_replay_without_a_masked_header_names_it(shop: Shell) -> None:
    """The app refuses the request, as it refuses any without a key."""
    done = shop.tracefork("replay", tape_of(shop, "ann-1"), "--app", "shop:app")
    assert done.exit == 1
    assert "answered 401" in done.err
    assert "--header 'authorization: …'" in done.err


def test_an_app_that_answers_otherwise_differs(shop: Shell) -> None:
    """The exchanges are the same, and the body is not."""
    words = ["--app", "shop:app", "--header", "Authorization: Bearer sesame"]
    done = shop.tracefork("replay", tape_of(shop, "ann-1"), *words, VERSION="2")
    assert done.exit == 1
    assert "with another body" in done.err


def test_verify_and_fork_take_an_app(shop: Shell, provider: ProviderServer) -> None:
    """A fork asks the last question live; its branch replays in the app, too."""
    words = ["--app", "shop:app", "--header", "Authorization: Bearer sesame"]
    tape = tape_of(shop, "ann-2")
    assert shop.tracefork("verify", tape, *words).exit == 0
    asked = len(provider.requests)
    branch = "tapes/branch.tape"
    done = shop.tracefork("fork", tape, "--at", "1", "--text", "changed", "-o", branch, *words)
    assert done.exit == 0, done.err
    assert len(provider.requests) == asked
    done = shop.tracefork("replay", branch, *words, "--json")
    assert (done.exit, done.document["exchanges"]) == (0, 2)
    (shop.folder / branch).unlink()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "holds a request of a service (POST /chat/{customer}). Name its app"),
        (["--app", "shop"], "--app takes package.module:app, not shop"),
        (["--app", "shop:nothing"], "has no app nothing"),
        (["--app", "shop:app", "agent.py"], "--app takes no agent"),
        (["--header", "a:b"], "give --app"),
        (["--app", "shop:app", "--header", "ab"], "--header takes NAME:VALUE"),
    ],
)
def test_a_mistake_says_what_to_type(shop: Shell, words: list[str], message: str) -> None:
    """All are mistakes of usage."""
    done = shop.tracefork("replay", tape_of(shop, "ann-1"), *words)
    assert done.exit == 2
    assert message in " ".join(done.err.split())


def test_an_app_needs_a_tape_of_a_service(shop: Shell, tmp_path: Path) -> None:
    """Any other tape has no request to handle again."""
    with record(tmp_path / "agent.tape"):
        pass
    done = shop.at(tmp_path).tracefork("replay", "agent.tape", "--app", "shop:app")
    assert done.exit == 2
    assert "holds no request of a service" in done.err


def test_gc_bounds_a_folder_of_a_service(shop: Shell, tmp_path: Path) -> None:
    """The oldest go first, and a marked one never does."""
    copy = shop.at(tmp_path)
    shutil.copytree(shop.folder / "tapes", tmp_path / "tapes")
    recorder = Recorder(tmp_path / "tapes")
    assert recorder.mark("id-mallory")
    assert recorder.mark("id-ann-3")
    (tmp_path / "tapes" / ".tracefork-1-x.tape.new").write_bytes(b"half")
    os.utime(tmp_path / "tapes" / ".tracefork-1-x.tape.new", (0, 0))
    dry = copy.tracefork("gc", "tapes", "--max-tapes", "2", "--dry-run", "--json").document
    assert len(list((tmp_path / "tapes").glob("*.tape"))) == 10
    wet = copy.tracefork("gc", "tapes", "--max-tapes", "2", "--json").document
    assert wet["removed"] == dry["removed"]
    left = {path.stem.partition("_")[2] for path in (tmp_path / "tapes").glob("*.tape")}
    marked = {"id-mallory", "id-ann-3"}
    assert marked < left
    assert len(left - marked) == 2
    assert "id-bob" in left
    assert not list((tmp_path / "tapes").glob(".tracefork-*"))
    for words in (["--max-age", "1s"], ["--max-bytes", "1B"]):
        time.sleep(1.1)
        assert copy.tracefork("gc", "tapes", *words).exit == 0
    left = {path.stem.partition("_")[2] for path in (tmp_path / "tapes").glob("*.tape")}
    assert left == marked
    done = copy.tracefork("gc", "tapes", "--max-bytes", "many")
    assert done.exit == 2
    assert "--max-bytes must be a size" in done.err


def test_gc_never_removes_a_marked_tape(shop: Shell, tmp_path: Path) -> None:
    """Neither by age nor by number."""
    copy = shop.at(tmp_path)
    shutil.copytree(shop.folder / "tapes", tmp_path / "tapes")
    for mark in (tmp_path / "tapes").glob("*.mark"):
        mark.unlink()
    Recorder(tmp_path / "tapes").mark("id-bob")
    assert copy.tracefork("gc", "tapes", "--keep", "0").exit == 0
    assert [path.stem.partition("_")[2] for path in (tmp_path / "tapes").glob("*.tape")] == [
        "id-bob"
    ]
