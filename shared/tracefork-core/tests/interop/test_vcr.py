"""A VCR cassette becomes a tape, with the grade that its bodies can prove."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.recognise import import_file, read
from tracefork_core.tape import Tape

ASKED = '{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "Zürich?"}]}'
ANSWERED = '{"choices": [{"message": {"role": "assistant", "content": "Bewölkt."}}]}'
URL = "https://api.openai.com/v1/chat/completions"


def headers(body: str | bytes, **more: str) -> dict[str, list[str]]:
    """Return headers as a cassette has them."""
    size = len(body if isinstance(body, bytes) else body.encode())
    names = {name.replace("_", "-"): [value] for name, value in more.items()}
    return {"Content-Type": ["application/json"], "Content-Length": [str(size)]} | names


def interaction() -> dict[str, Any]:
    """Return a call as vcrpy keeps it."""
    return {
        "request": {"method": "POST", "uri": URL, "headers": headers(ASKED), "body": ASKED},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": headers(ANSWERED),
            "body": {"string": ANSWERED},
        },
    }


def run_of(*interactions: dict[str, Any]) -> ForeignRun:
    """Return the run on a JSON cassette with these interactions."""
    document = {"version": 1, "interactions": interactions}
    return read(Path("old.json"), json.dumps(document).encode())


def test_bodies_headers_and_status_are_on_the_tape(tmp_path: Path) -> None:
    """The file is YAML as vcrpy writes it."""
    cassette = tmp_path / "old.yaml"
    packed = base64.b64encode(gzip.compress(ANSWERED.encode())).decode()
    cassette.write_text(
        "interactions:\n- request:\n    body: '"
        + ASKED
        + f"'\n    headers:\n      content-length: ['{len(ASKED.encode())}']\n"
        + f"    method: POST\n    uri: {URL}\n  response:\n    body:\n      string: !!binary |\n"
        + f"        {packed}\n    headers:\n      Content-Encoding: [gzip]\n      X-Id: [a, b]\n"
        + "    status: {code: 429, message: Too Many Requests}\nversion: 1\n"
    )
    receipt, run = import_file(cassette, tmp_path / "new.tape")
    assert (run.format, run.grade, receipt.exchanges) == ("VCR cassette", "proven", 1)
    with Tape.open(tmp_path / "new.tape") as tape:
        exchange = tape.exchanges[0]
        assert (exchange.method, exchange.url) == ("POST", URL)
        assert exchange.request_body == ASKED.encode()
        assert gzip.decompress(exchange.response_body) == ANSWERED.encode()
        assert (exchange.status, exchange.reason) == (429, "Too Many Requests")
        assert [pair for pair in exchange.response_headers if pair[0] == "X-Id"] == [
            ("X-Id", "a"),
            ("X-Id", "b"),
        ]


def test_bodies_of_the_recorded_length_are_proven() -> None:
    """Nothing is missing then."""
    run = run_of(interaction(), interaction())
    assert (run.grade, run.missing) == ("proven", [])


CHANGED = {
    "the length of the request is not kept": ("request", {"headers": {}}),
    "the request was changed": ("request", {"body": '{"model": "REDACTED"}'}),
    "the request is missing": ("request", {"body": None}),
    "the request is there as values": ("request", {"parsed_body": json.loads(ASKED)}),
    "the response is there as values": ("response", {"parsed_body": json.loads(ANSWERED)}),
    "the response was changed": ("response", {"body": {"string": '{"choices": []}'}}),
    "the response was decoded": ("response", {"headers": headers("x", Content_Encoding="gzip")}),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_body_that_is_not_as_sent_is_not_proven(name: str) -> None:
    """One such body lowers the grade of the run, and a sentence says which."""
    side, change = CHANGED[name]
    changed = interaction()
    changed[side] |= change
    run = run_of(interaction(), changed)
    assert run.grade == "unproven"
    assert [exchange.grade for exchange in run.exchanges] == ["proven", "unproven"]
    assert len(run.missing) == 1


def test_a_response_without_its_body_is_not_replayable() -> None:
    """The head alone is no answer."""
    without = interaction()
    without["response"]["body"] = {"string": None}
    assert run_of(without).grade == "structure"


def test_a_response_without_a_status_is_not_replayable() -> None:
    """No status is made up for it."""
    without = interaction()
    without["response"]["status"] = {"message": "OK"}
    run = run_of(without)
    assert (run.grade, run.exchanges[0].head) == ("structure", None)


def test_a_response_that_was_cut_off_is_not_replayable() -> None:
    """A stream of gzip says where it ends."""
    packed = gzip.compress(ANSWERED.encode())[:-12]
    cut = interaction()
    cut["response"] |= {
        "headers": {"Content-Encoding": ["gzip"]},
        "body": {"base64_string": base64.b64encode(packed).decode()},
    }
    assert run_of(cut).grade == "content"


def test_a_decoded_response_has_headers_that_fit_it() -> None:
    """A client would try to decode it again, and read as many bytes as were sent."""
    decoded = interaction()
    decoded["response"]["headers"] = headers("x", Content_Encoding="gzip", X_Id="1")
    exchange = run_of(decoded).exchanges[0]
    assert exchange.head is not None
    assert exchange.head.headers == (
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(ANSWERED.encode()))),
        ("X-Id", "1"),
    )


def test_cassettes_of_cassetter_are_read_in_the_order_of_their_times() -> None:
    """Its file sorts them by path. Binary bodies are hexadecimal."""
    late: dict[str, Any] = {
        "request": {"method": "POST", "uri": URL, "headers": {}, "body": {"type": "none"}},
        "response": {"status": 201, "headers": {}, "body": {"type": "binary", "content": "00ff"}},
        "recorded_at": "2026-11-28T14:27:12.000001+00:00",
    }
    early: dict[str, Any] = late | {"recorded_at": "2026-11-28T14:27:11+00:00"}
    early["request"] = early["request"] | {"body": {"type": "json", "content": {"b": 1, "a": 2}}}
    first, second = run_of(late, early).exchanges
    assert first.request.body == b'{"b":1,"a":2}'
    assert (second.request.body, second.chunks) == (b"", (b"\x00\xff",))
    assert second.started - first.started == 1_000_001_000
    assert second.head is not None
    assert second.head.status == 201


def test_cassettes_in_toml_are_read(tmp_path: Path) -> None:
    """Cassetter writes those, too."""
    cassette = tmp_path / "old.toml"
    cassette.write_text(
        'version = 1\n[[interactions]]\n[interactions.request]\nmethod = "POST"\n'
        f'uri = "{URL}"\nbody_type = "json"\nbody_content = \'{{"a":1.50}}\'\n'
        '[interactions.response]\nstatus = 200\nbody_type = "text"\nbody_content = "yes"\n'
    )
    exchange = read(cassette, cassette.read_bytes()).exchanges[0]
    assert (exchange.request.body, exchange.chunks) == (b'{"a":1.50}', (b"yes",))


def test_a_deflated_body_is_told_from_a_decoded_one() -> None:
    """It has no mark at its beginning."""
    deflated = zlib.compress(ANSWERED.encode())
    kept = interaction()
    kept["response"] |= {
        "headers": {"Content-Encoding": ["deflate"]},
        "body": {"base64_string": base64.b64encode(deflated).decode()},
    }
    assert run_of(kept).grade == "proven"


def test_telemetry_is_left_out_and_reported() -> None:
    """No tape holds what a framework reports about itself."""
    telemetry = interaction()
    telemetry["request"]["uri"] = "https://telemetry.crewai.com:4319/v1/traces"
    run = run_of(telemetry, interaction())
    assert len(run.exchanges) == 1
    assert run.missing == ["1 request of telemetry, which no tape holds"]


def test_a_change_of_equal_length_is_not_seen() -> None:
    """A limit: the length is all that a cassette says of what was sent."""
    changed = interaction()
    changed["request"]["body"] = ASKED.replace("Zürich", "Züribe")
    assert run_of(changed).grade == "proven"
    changed["request"]["body"] = ASKED.replace("Zürich", "Bern")
    assert run_of(changed).grade == "unproven"


def test_a_stream_is_one_chunk() -> None:
    """A limit: a cassette does not say where its pieces began."""
    stream = interaction()
    events = "data: {}\n\ndata: [DONE]\n\n"
    stream["response"] |= {"body": {"string": events}, "headers": {}}
    assert run_of(stream).exchanges[0].chunks == (events.encode(),)


def with_body(values: bytes) -> bytes:
    """Return a cassette in YAML whose request body has these values."""
    return b"interactions: [{request: {uri: 'http://a/', parsed_body: %b}}]\n" % values


TOO_LARGE = {
    "bomb.yaml": b"a: &a [1, 1]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 119))
    + with_body(b"*w"),
    "circle.yaml": with_body(b"&a [*a, *a]"),
    "deep.yaml": with_body(b"[" * 200 + b"]" * 200),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_cassette_that_stands_for_a_huge_one_is_refused(name: str) -> None:
    """YAML may name a part in many places."""
    with pytest.raises(UsageError, match="repeats its parts"):
        read(Path(name), TOO_LARGE[name])
    small = with_body(b"[&a [1], *a, *a]")
    assert read(Path(name), small).exchanges[0].request.body == b"[[1],[1],[1]]"


HOSTILE = {
    "deep.json": b"[" * 100_000,
    "brackets.yaml": b"[" * 100_000,
    "object.yaml": b"interactions: !!python/object/apply:os.system [echo no]",
    "number.yaml": b"a: " + b"9" * 5000,
    "date.yaml": b"a: 2020-99-99",
    "binary.yaml": b"\x00\x01\x02",
    "empty.yaml": b"",
    "other.json": b'{"log": 1}',
    "none.json": b'{"interactions": []}',
    "odd.json": b'{"interactions": [1, null, "x"]}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_recording_is_refused(name: str) -> None:
    """With one line, in bounded time."""
    with pytest.raises(UsageError, match=name) as refused:
        read(Path(name), HOSTILE[name])
    assert "\n" not in str(refused.value)


def test_an_interaction_of_the_wrong_types_does_not_stop_the_import() -> None:
    """What cannot be read counts as missing."""
    odd = {"request": {"headers": [["a", 1], 2], "body": 3}, "response": {"status": "x"}}
    run = run_of(odd, {"request": None, "response": 1})
    assert run.exchanges[0].request.headers == (("a", "1"),)
    assert [exchange.grade for exchange in run.exchanges] == ["structure", "structure"]
