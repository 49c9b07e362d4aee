"""A HAR file becomes a tape, with the bodies that it has and the websocket messages."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tracefork_core import replay
from tracefork_core.errors import DivergenceError
from tracefork_core.interop.exporting.har import document
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.recognise import import_file, read
from tracefork_core.tape import Tape

ASKED = '{"q": "Zürich?"}'
ANSWERED = '{"a": "Bewölkt."}'
SECOND = 1_000_000_000


def pairs(**headers: str) -> list[dict[str, str]]:
    """Return headers as a HAR has them."""
    return [{"name": name.replace("_", "-"), "value": value} for name, value in headers.items()]


def entry(**changes: Any) -> dict[str, Any]:
    """Return an entry as a browser writes it; `changes` replace fields of its parts."""
    size = len(ASKED.encode())
    parts: dict[str, Any] = {
        "startedDateTime": "2026-11-28T10:00:00.500Z",
        "time": 1500,
        "timings": {
            "blocked": -1,
            "dns": 10,
            "connect": 40,
            "send": 50,
            "wait": 900,
            "receive": 500,
        },
        "request": {
            "method": "POST",
            "url": "https://api.example.com/ask#top",
            "httpVersion": "h2",
            "headers": [
                *pairs(content_type="application/json"),
                {"name": ":path", "value": "/ask"},
            ],
            "postData": {"mimeType": "application/json", "text": ASKED},
            "bodySize": size,
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "h2",
            "headers": pairs(Content_Type="application/json"),
            "content": {"size": len(ANSWERED.encode()), "text": ANSWERED},
        },
    }
    for name, change in changes.items():
        part = parts.get(name)
        parts[name] = part | change if isinstance(part, dict) else change
    return parts


def run_of(*entries: dict[str, Any]) -> ForeignRun:
    """Return the run in a HAR file with these entries."""
    return read(
        Path("old.har"), json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()
    )


def test_bodies_and_times_are_those_of_the_file(tmp_path: Path) -> None:
    """A body whose size the file gives is proven."""
    old = tmp_path / "old.har"
    old.write_text(json.dumps({"log": {"entries": [entry()]}}))
    receipt, run = import_file(old, tmp_path / "new.tape")
    assert (run.format, run.grade, receipt.exchanges) == ("HAR file", "proven", 1)
    with Tape.open(tmp_path / "new.tape") as tape:
        exchange = tape.exchanges[0]
        assert exchange.url == "https://api.example.com/ask"
        assert exchange.request_body.decode() == ASKED
        assert exchange.response_body.decode() == ANSWERED
        assert exchange.request_headers == [("content-type", "application/json")]
        assert exchange.aside.first_byte == SECOND
        assert exchange.aside.took == 1.5 * SECOND
        assert exchange.aside.http_version == "HTTP/2"


def test_a_tape_that_was_exported_comes_back_with_its_digest(tmp_path: Path) -> None:
    """Also bodies that are no text, and chunks."""
    packed = gzip.compress(ANSWERED.encode())
    headers = pairs(Content_Encoding="gzip")
    coded = base64.b64encode(packed).decode()
    content = {"size": len(packed), "text": coded, "encoding": "base64"}
    sizes = {"sizes": [5, 0, len(packed) - 5], "pace": [1, 2, 3]}
    chunked = entry(response={"headers": headers, "content": content}) | {"_chunks": sizes}
    old = tmp_path / "old.har"
    old.write_text(json.dumps({"log": {"entries": [entry(), chunked]}}))
    before, _ = import_file(old, tmp_path / "old.tape")
    with Tape.open(tmp_path / "old.tape") as tape:
        assert len(tape.exchanges[1].chunks) == 3
        old.write_text(json.dumps(document(tape, content=True)))
        (tmp_path / "bare.har").write_text(json.dumps(document(tape, content=False)))
    again, run = import_file(old, tmp_path / "new.tape")
    assert again.digest == before.digest
    assert run.grade == "proven"
    assert read(old, (tmp_path / "bare.har").read_bytes()).grade == "structure"


def test_entries_are_in_the_order_in_which_they_began() -> None:
    """Whatever their order in the file."""
    late = entry(startedDateTime="2026-11-28T10:00:01Z")
    first, second = run_of(late, entry()).exchanges
    assert second.started - first.started == SECOND // 2


def test_base64_is_decoded() -> None:
    """Browsers write bodies that are no text so."""
    coded = base64.b64encode(b"\x00\xff").decode()
    run = run_of(entry(response={"content": {"size": 2, "text": coded, "encoding": "base64"}}))
    assert run.exchanges[0].chunks == (b"\x00\xff",)
    assert run.grade == "proven"


def test_a_response_that_was_coded_is_not_proven() -> None:
    """The file has it decoded; its headers are made to fit."""
    headers = pairs(Content_Encoding="br", Content_Length="9")
    exchange = run_of(entry(response={"headers": headers})).exchanges[0]
    assert exchange.grade == "unproven"
    assert exchange.head is not None
    assert exchange.head.headers == (("Content-Length", str(len(ANSWERED.encode()))),)


def test_a_body_that_the_browser_did_not_keep_is_missing() -> None:
    """Such as that of a stream: the size is there, the text is not."""
    run = run_of(entry(response={"content": {"size": 512, "mimeType": "text/event-stream"}}))
    assert run.grade == "structure"
    assert run.missing == ["The response body of 1 request is missing"]


def test_a_body_of_another_size_than_recorded_is_not_proven() -> None:
    """The file has a text in another character encoding, for instance."""
    assert run_of(entry(response={"content": {"size": 3, "text": ANSWERED}})).grade == "unproven"
    assert run_of(entry(request={"bodySize": 3})).grade == "unproven"


def test_a_request_without_its_body_is_not_proven() -> None:
    """Its size says that it had one."""
    run = run_of(entry(request={"postData": None}))
    assert run.grade == "unproven"
    assert run.unknown_bodies == [0]


def test_a_request_that_was_blocked_has_no_response() -> None:
    """Browsers give it the status 0."""
    run = run_of(entry(response={"status": 0}))
    assert run.exchanges[0].head is None
    assert run.grade == "structure"


def test_what_crossed_no_network_is_left_out() -> None:
    """Pages hold data URLs."""
    run = run_of(entry(request={"url": "data:text/plain,x"}), entry())
    assert len(run.exchanges) == 1
    assert run.missing == ["Entries of no network are left out: 1"]


def websocket() -> dict[str, Any]:
    """Return an entry with the messages of a websocket."""
    messages = [
        {"type": "receive", "time": 1_795_000_000.0, "opcode": 1, "data": "hello"},
        {"type": "send", "time": 1_795_000_001.0, "opcode": 1, "data": '{"n": 1}'},
        {"type": "receive", "time": 1_795_000_002.5, "opcode": 1, "data": "one\ntwo"},
        {"type": "receive", "time": 1_795_000_003.0, "opcode": 2, "data": "AP8="},
    ]
    request = {
        "method": "GET",
        "url": "wss://example.com/live",
        "headers": pairs(Upgrade="websocket"),
        "postData": None,
        "bodySize": 0,
    }
    response = {"status": 101, "headers": [], "content": {"size": 0}}
    return entry(request=request, response=response) | {"_webSocketMessages": messages}


def test_a_client_of_websockets_is_answered(tmp_path: Path) -> None:
    """By the messages of the file, in their order and kinds."""
    old = tmp_path / "old.har"
    old.write_text(json.dumps({"log": {"entries": [websocket()]}}))
    import_file(old, tmp_path / "new.tape")
    with replay(tmp_path / "new.tape") as run, connect("wss://example.com/live") as socket:
        assert socket.recv() == "hello"
        socket.send('{"n": 1}')
        assert [socket.recv(), socket.recv()] == ["one\ntwo", b"\x00\xff"]
    assert run.sockets == 0
    with pytest.raises(DivergenceError), replay(tmp_path / "new.tape"):
        with connect("wss://example.com/live") as socket:
            socket.send('{"n": 2}')


def test_messages_of_a_websocket_are_exchanges() -> None:
    """What the server sent answers the last message of the agent."""
    run = run_of(websocket())
    handshake, sent = run.exchanges
    assert run.grade == "proven"
    assert handshake.chunks == (b"data: hello\n\n",)
    assert (sent.request.method, sent.request.body) == ("SEND", b'{"n": 1}')
    assert sent.chunks == (b"data: one\ndata: two\n\n", b"event: base64\ndata: AP8=\n\n")
    assert sent.took == 2 * SECOND


def test_a_cassette_of_a_websocket_has_its_content_alone() -> None:
    """It has no address to replay, and values instead of bytes."""
    document = {
        "interactions": [
            {"kind": "message", "direction": "sent", "data": {"type": "session.update"}},
            {"kind": "message", "direction": "received", "data": {"type": "session.updated"}},
        ]
    }
    run = read(Path("old.json"), json.dumps(document).encode())
    assert run.grade == "content"
    assert [exchange.request.method for exchange in run.exchanges] == ["GET", "SEND"]
    assert run.exchanges[1].chunks == (b'data: {"type":"session.updated"}\n\n',)


def test_an_entry_of_the_wrong_types_does_not_stop_the_import() -> None:
    """What cannot be read counts as missing."""
    odd = {"startedDateTime": 5, "time": "x", "request": {"url": "http://a/", "headers": [1]}}
    run = run_of(odd, entry(response={"content": {"size": "x", "text": 1}}))
    assert run.grade == "structure"
