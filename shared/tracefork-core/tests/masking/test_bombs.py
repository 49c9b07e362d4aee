"""A small answer that unpacks to gigabytes is recorded as it is, and the tape says so."""

from __future__ import annotations

import gzip
import random
import resource
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import brotli
import httpx2
import pytest
from backports import zstd

from tracefork_core import Tape, record
from tracefork_core.masking.body import MaskedBody
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.redactor import Redactor
from tracefork_core.redaction.redaction import scan

from .conftest import KEY

BOMBS = {
    "br": brotli.compress(bytes(2**28), quality=1),
    "zstd": zstd.compress(bytes(2**30)),
    "gzip, gzip": gzip.compress(gzip.compress(bytes(2**28), 1)),
}
AGENT = """
import resource, sys
import httpx2
import tracefork_core
with tracefork_core.record(sys.argv[2]) as run, httpx2.Client() as http:
    http.get(sys.argv[1] + "/plain").read()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with http.stream("GET", sys.argv[1] + "/" + sys.argv[3]) as answer:
        print(sum(map(len, answer.iter_raw())))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, run.receipt.unsearched)
"""


class Bomber(BaseHTTPRequestHandler):
    """Serves each bomb under its coding; answers a POST with nothing."""

    def do_GET(self) -> None:
        coding = self.path[1:].replace("%20", " ")
        body = BOMBS.get(coding, b"plain")
        self.send_response(200)
        if coding in BOMBS:
            self.send_header("content-encoding", coding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def bomber() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bomber)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("coding", BOMBS)
def test_recording_a_bomb_takes_little_memory(coding: str, bomber: str, tmp_path: Path) -> None:
    """The agent reads the packed bytes, so only the recorder unpacks them."""
    words = [sys.executable, "-c", AGENT, bomber, str(tmp_path / "run.tape"), coding]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    size, grown, unsearched = map(int, done.stdout.split())
    assert size == len(BOMBS[coding])
    assert grown < 64 * 1024
    assert unsearched == 1
    with Tape.open(tmp_path / "run.tape") as tape:
        assert tape.exchanges[1].response_body == BOMBS[coding]
        assert tape.exchanges[1].aside.unsearched == ["response"]
        assert tape.receipt is not None
        assert tape.receipt.unsearched == 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert scan(tape, Masks()).odd == {coding}
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_request_that_is_a_bomb_is_marked(bomber: str, tmp_path: Path) -> None:
    """A request without one, and a small packed one, are searched and not marked."""
    small = gzip.compress(b"hello")
    with record(tmp_path / "run.tape"), httpx2.Client() as http:
        for body, coding in ((BOMBS["zstd"], "zstd"), (small, "gzip"), (b"hello", "identity")):
            http.post(bomber, content=body, headers={"content-encoding": coding})
    with Tape.open(tmp_path / "run.tape") as tape:
        marks = [exchange.aside.unsearched for exchange in tape.exchanges]
        assert marks == [["request"], [], []]
        assert tape.exchanges[0].request_body == BOMBS["zstd"]


def test_raw_and_metadata_tapes_have_no_mark(bomber: str, tmp_path: Path) -> None:
    """One searches nothing, the other stores no body."""
    for mode in ("raw", "metadata"):
        with record(tmp_path / mode, mode=mode) as run, httpx2.Client() as http:
            with http.stream("GET", f"{bomber}/zstd") as answer:
                list(answer.iter_raw())
        assert run.receipt is not None
        assert run.receipt.unsearched == 0


@pytest.mark.parametrize("coding", [None, "gzip"])
def test_a_secret_in_endless_base64_does_not_slow_a_stream_down(coding: str | None) -> None:
    """The end of such a secret is not known until the text ends, so it is not looked for before."""
    plain = b"QUJD" * 20 + in_base64(KEY) + b64encode(random.Random(3).randbytes(2**20))
    packed = gzip.compress(plain, 1) if coding else plain
    pieces = [packed[at : at + 1000] for at in range(0, len(packed), 1000)]
    body, spent = MaskedBody(Redactor({"A_KEY": [KEY]}), coding), resource.getrusage
    before = spent(resource.RUSAGE_SELF).ru_utime
    shown = b"".join(body.feed(piece) for piece in pieces)
    masked = body.finish(pieces, whole=True)
    assert spent(resource.RUSAGE_SELF).ru_utime - before < 3
    assert masked is not None
    assert [match.name for match in masked.matches] == ["A_KEY"]
    assert in_base64(KEY) not in shown


def in_base64(key: str) -> bytes:
    """Return a key in base64, aligned, so that it stands inside of a longer base64 text."""
    return b64encode(key.encode() + b" " * (-len(key) % 3))
