"""The specification of the format is enough: a reader written from it alone agrees with ours.

`SecondReader` knows docs/reference/tape-format.md and nothing of tracefork.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pyrage
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pyrage import x25519

from tracefork_core import Replace, Tape, fork, record
from tracefork_core.tape import TapeWriter, event
from tracefork_core.tape.blobs import BlobRecord
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import Receipt
from tracefork_core.tape.signature import sign
from tracefork_testkit import ProviderServer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class SecondReader:
    """Reads a tape as its specification says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        alone = not path.with_name(path.name + "-wal").exists()
        db = sqlite3.connect(f"file:{path}?mode=ro{'&immutable=1' * alone}", uri=True)
        assert db.execute("PRAGMA application_id").fetchone() == (0x7472666B,)
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        self.meta = dict(db.execute("SELECT key, value FROM meta"))
        self.parent = None
        if "origin" in self.meta:
            self.origin = json.loads(self.meta["origin"])
            self.parent = SecondReader(path.with_name(self.origin["name"]))
        pieces: dict[int, tuple[list[bytes], list[bytes]]] = {}
        for segment, crc, events, bodies in db.execute(
            "SELECT segment, crc, events, bodies FROM log ORDER BY seq"
        ):
            assert zlib.crc32(events + bodies) == crc
            pieces.setdefault(segment, ([], []))[0].append(events)
            pieces[segment][1].append(bodies)
        db.close()
        self.blobs: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.events: list[tuple[str, bytes, Any]] = []
        for events, bodies in map(self._frames, pieces.values()):
            for kind, payload, aside in _lines(events):
                if kind == "blob":
                    self.blobs.setdefault(aside["sha"], (aside, bodies))
                self.events.append((kind, payload, aside))
        found: dict[int, Any] = {
            json.loads(p)["n"]: (p, a, None) for k, p, a in self.events if k == "exchange"
        }
        if self.meta["state"] == "recording":
            found = {**dict(self._in_flight()), **found}
        shared = self.parent.exchanges[: self.origin["at"]] if self.parent else []
        self.exchanges: list[Any] = [*shared, *(found[n] for n in sorted(found))]
        self.digest = _chain(payload for payload, _, _ in self.exchanges)
        assert not self.parent or _chain(p for p, _, _ in shared) == self.origin["digest"]

    def body(self, address: str) -> bytes:
        if address == hashlib.sha256(b"").hexdigest():
            return b""
        if address not in self.blobs and self.parent:
            return self.parent.body(address)
        blob, bodies = self.blobs[address]
        at, parts = blob["at"], []
        for piece in blob.get("pieces", [[blob["size"]]]):
            if len(piece) == 1:
                parts.append(bodies[at : at + piece[0]])
                at += piece[0]
            else:
                parts.append(self.body(blob["base"])[piece[0] : piece[0] + piece[1]])
        body = b"".join(parts)
        assert hashlib.sha256(body).hexdigest() == address
        assert len(body) == blob["size"]
        return body

    def _in_flight(self) -> Iterator[tuple[int, tuple[bytes, Any, list[bytes]]]]:
        data = self.path.with_name(self.path.name + "-flight").read_bytes()
        flights: dict[int, Any] = {}
        while (end := data.find(b"\n")) >= 0:
            frame = json.loads(data[:end])
            size = frame.get("size", 0)
            body, data = data[end + 1 : end + 1 + size], data[end + 1 + size :]
            if len(body) < size:
                break
            if "turn" in frame:
                flights[frame["n"]][1].append((frame["turn"], body))
            else:
                before = flights.get(frame["n"], (None, [], body))
                flights[frame["n"]] = (frame, *before[1:])
        for n, (frame, chunks, body) in flights.items():
            payload, aside = frame["payload"], frame["aside"]
            aside["sizes"] = [len(chunk) for _, chunk in chunks]
            aside["turns"] = aside.get("turns", []) + [[turn, 1] for turn, _ in chunks]
            answer = b"".join(chunk for _, chunk in chunks)
            if "response" in payload:
                payload["response"]["body"] = hashlib.sha256(answer).hexdigest()
            spelled = json.dumps(payload, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            yield n, (spelled.encode(), aside, [body, answer])

    def _frames(self, pieces: tuple[list[bytes], list[bytes]]) -> list[bytes]:
        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 20}
        frames = [b"".join(parts) for parts in pieces]
        # A frame that is still open has no end.
        return [f and zstd.ZstdDecompressor(options=options).decompress(f) for f in frames]


def _lines(events: bytes) -> Iterator[tuple[str, bytes, Any]]:
    for line in events.splitlines():
        event = json.loads(line)
        start = line.index(b',"payload":') + len(b',"payload":')
        _, length = json.JSONDecoder().raw_decode(line[start:].decode())
        yield event["kind"], line[start:].decode()[:length].encode(), event["aside"]


def _chain(payloads: Iterator[bytes]) -> str:
    link = hashlib.sha256(b"tracefork tape 1").digest()
    for payload in payloads:
        link = hashlib.sha256(link + payload).digest()
    return link.hex()


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


def agent(http: httpx2.Client, url: str, steps: int, other_from: int = 99) -> Iterator[None]:
    """Send a transcript that grows, then read a stream; stop after each delivery."""
    messages: list[dict[str, str]] = []
    for step in range(steps):
        words = hashlib.sha256(b"%d %d" % (step, step >= other_from)).hexdigest() * 12
        messages.append({"role": "user", "content": f"«{step}»\n\x1f {words}"})
        asked = {"model": "m", "messages": messages}
        answer = http.post(f"{url}/v1/chat/completions", json=asked).json()
        messages.append(answer["choices"][0]["message"])
        yield
    with http.stream("GET", f"{url}/chunked?n=4") as stream:
        for _ in stream.iter_raw():
            yield


def agree(path: Path) -> SecondReader:
    """Compare everything that two readers say about a tape."""
    second = SecondReader(path)
    with Tape.open(path) as tape:
        assert second.digest == tape.digest
        assert len(second.exchanges) == len(tape.exchanges)
        for (payload, aside, flown), exchange in zip(second.exchanges, tape.exchanges, strict=True):
            asked, answered = json.loads(payload)["request"], json.loads(payload).get("response")
            assert payload == exchange.canonical
            assert aside.get("sizes", []) == exchange.aside.sizes
            assert aside.get("turns", []) == exchange.aside.turns
            bodies = flown or [second.body(one["body"]) for one in (asked, answered) if one]
            assert bodies == [exchange.request_body, exchange.response_body][: len(bodies)]
        kinds = [event.kind for event in tape.events]
        assert [kind for kind, _, _ in second.events] == kinds
    return second


def test_the_page_names_the_fields_that_are_always_written() -> None:
    """A writer that leaves one of them out because it is 0 makes a tape that no reader takes."""
    page = (Path(__file__).parents[2] / "docs/reference/tape-format.md").read_text()
    named = dict(re.findall(r"^([A-Z]\w+): ([a-z_ ]+)$", page, re.MULTILINE))
    records = {name: getattr(event, name, BlobRecord) for name in named}
    fields = {name: msgspec.structs.fields(record) for name, record in records.items()}
    required = {name: [f.name for f in own if f.required] for name, own in fields.items()}
    assert {name: words.split() for name, words in named.items()} == required
    zero = {f.name for own in fields.values() for f in own if type(f.default) is int}
    (sentence,) = re.findall(r"and a `0` is written: (.*?)\.\n", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == zero


def test_a_second_reader_agrees_on_a_closed_tape(tmp_path: Path, provider: ProviderServer) -> None:
    """Every body, deltas included, every payload and the digest are the same."""
    path = tmp_path / "run.tape"
    with record(path), httpx2.Client(verify=False) as http:
        for _ in agent(http, provider.url, 30):
            pass
    second = agree(path)
    deltas = [blob for blob, _ in second.blobs.values() if "base" in blob]
    assert len(deltas) > 20, "the tape has no deltas: this proved nothing about them"
    receipt = next(aside for kind, _, aside in second.events if kind == "receipt")
    assert (receipt["digest"], second.meta["state"]) == (second.digest, "complete")
    mark, data = second.meta["checksum"], path.read_bytes()
    place = data.index(mark)
    assert hashlib.sha256(data[:place] + bytes(32) + data[place + 32 :]).digest() == mark


def test_a_second_reader_agrees_on_a_tape_that_was_cut_off(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The files of a running recording, log and journal included, hold the same for both."""
    path, cut = tmp_path / "run.tape", tmp_path / "cut"
    cut.mkdir()
    with record(path), httpx2.Client(verify=False) as http:
        for number, _ in enumerate(agent(http, provider.url, 12)):
            if number == 14:  # Three chunks of the stream have come.
                for file in tmp_path.glob("run.tape*"):
                    shutil.copy(file, cut)
    second = agree(cut / "run.tape")
    payload, aside, flown = second.exchanges[-1]
    assert (aside.get("end", "open"), len(aside["sizes"])) == ("open", 3)
    assert json.loads(payload)["response"]["body"] == hashlib.sha256(flown[1]).hexdigest()


def test_a_second_reader_agrees_on_a_branch(tmp_path: Path, provider: ProviderServer) -> None:
    """What a branch shares with its parent is found there by both."""
    path, other = tmp_path / "run.tape", tmp_path / "other.tape"
    for target, other_from in ((path, 99), (other, 5)):
        with record(target), httpx2.Client(verify=False) as http:
            for _ in agent(http, provider.url, 12, other_from):
                pass
    with Tape.open(path) as parent, Tape.open(other) as live:
        writer = TapeWriter(tmp_path / "branch.tape", describe(), parent=parent, at=5)
        for exchange in live.exchanges[5:]:
            writer.begin(exchange.payload, exchange.aside, exchange.request_body)
            writer.end(exchange.payload, exchange.aside, exchange.response_body)
        writer.close(Receipt("", 0))
    second = agree(tmp_path / "branch.tape")
    bases = {blob["base"] for blob, _ in second.blobs.values() if "base" in blob}
    assert bases - set(second.blobs), "no body rests on the parent: this proved nothing about that"


def test_a_branch_says_what_a_fork_did(tmp_path: Path, provider: ProviderServer) -> None:
    """The branch event, and of each exchange who answered it and in whose place it was asked."""
    path = tmp_path / "run.tape"

    def ask_thrice() -> None:
        with httpx2.Client(verify=False) as http:
            for _ in range(3):
                http.get(f"{provider.url}/bytes/4")

    with record(path):
        ask_thrice()
    with fork(path, at=1, replace=Replace(body=b"other"), hold=[2]) as branch:
        ask_thrice()
    second = agree(branch.path)
    (event,) = (aside for kind, _, aside in second.events if kind == "branch")
    assert event["at"] == 1
    assert [(one["n"], one["kind"]) for one in event["changes"]] == [(1, "replace"), (2, "keep")]
    asides = [aside for _, aside, _ in second.exchanges]
    assert [aside.get("answered", "") for aside in asides] == ["", "given", "recorded"]
    assert [aside.get("place") for aside in asides] == [None, 1, 2]


def test_a_second_reader_finds_a_changed_payload(tmp_path: Path, provider: ProviderServer) -> None:
    """The control: a payload that differs in one byte is another digest for both readers."""
    path = tmp_path / "run.tape"
    with record(path), httpx2.Client(verify=False) as http:
        for _ in agent(http, provider.url, 2):
            pass
    before = agree(path).digest
    db = sqlite3.connect(path)
    for seq, data, bodies in db.execute("SELECT seq, events, bodies FROM log").fetchall():
        plain = zstd.ZstdDecompressor().decompress(data).replace(b"/chunked", b"/chunkes")
        events = zstd.compress(plain)
        values = (events, zlib.crc32(events + bodies), seq)
        db.execute("UPDATE log SET events = ?, crc = ? WHERE seq = ?", values)
    db.commit()
    db.close()
    assert agree(path).digest != before


def test_a_sealed_tape_opens_as_specified(tmp_path: Path, provider: ProviderServer) -> None:
    """Nonce, cipher and associated data are those of the document, in the log and the journal."""
    identity, path, cut = x25519.Identity.generate(), tmp_path / "run.tape", tmp_path / "cut.tape"
    readers = [str(identity.to_public())]
    with (
        record(path, mode="sealed", seal_to=readers) as run,
        httpx2.Client(verify=False) as http,
    ):
        for number, _ in enumerate(agent(http, provider.url, 3)):
            if number == 4:  # Two chunks of the stream have come.
                shutil.copy(f"{path}-flight", f"{cut}-flight")
    db = sqlite3.connect(path)
    meta = dict(db.execute("SELECT key, value FROM meta"))
    assert (meta["mode"], json.loads(meta["structure"])) == ("sealed", {"exchanges": 4})
    key = AESGCM(pyrage.decrypt(meta["key"], [identity]))
    found = {}
    for seq, events in db.execute("SELECT seq, events FROM log ORDER BY seq"):
        frame = key.decrypt(events[:12], events[12:], b"events %d" % seq)
        for kind, payload, _ in _lines(zstd.decompress(frame)):
            if kind == "exchange":
                found[json.loads(payload)["n"]] = payload
    db.close()
    assert _chain(found[n] for n in sorted(found)) == run.digest
    frames, data = [], Path(f"{cut}-flight").read_bytes()
    while data:
        line, data = data.split(b"\n", 1)
        sealed = bytes.fromhex(line.decode())
        frame = json.loads(key.decrypt(sealed[:12], sealed[12:], b"flight"))
        size = frame.get("size", 0)
        body, data = data[:size], data[size:]
        if body:
            frames.append(key.decrypt(body[:12], body[12:], b"flight %d" % frame["n"]))
    assert [len(body) for body in frames[-2:]] == [8, 8]


def test_a_signature_verifies_as_specified(tmp_path: Path, provider: ProviderServer) -> None:
    """The statement, its spelling and the key are those of the document."""
    path, key = tmp_path / "run.tape", Ed25519PrivateKey.generate()
    with record(path) as run, httpx2.Client(verify=False) as http:
        for _ in agent(http, provider.url, 1):
            pass
    assert run.digest is not None
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key").write_bytes(pem)
    sign(path, run.digest, tmp_path / "key")
    found = json.loads(Path(f"{path}.sig").read_bytes())
    statement = {
        "about": "tracefork tape",
        "digest": SecondReader(path).digest,
        "file": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    assert found["statement"] == statement
    spelled = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    key.public_key().verify(base64.b64decode(found["signature"]), spelled)
