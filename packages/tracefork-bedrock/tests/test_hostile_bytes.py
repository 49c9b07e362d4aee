"""Requests and answers may be anything: reading them never raises, and forks say one sentence.

`TRACEFORK_EXAMPLES=3000` tries that many cases of each property.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracefork_core as tracefork
from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.wire_format import FORMAT
from tracefork_core import UsageError
from tracefork_core.adapters.formats import Answer, Wanted
from tracefork_core.cli.main import main
from tracefork_testkit.http1 import Delivery

from .conftest import HELLO, ByteServer, client_at
from .test_reading import CONVERSE, CONVERSED, CONVERSED_IN_PIECES
from .test_reading_makers import INVOKED, PIECES
from .wire import Asked, answered, asked, chunked, of_model, streamed

EXAMPLES = settings(max_examples=int(os.environ.get("TRACEFORK_EXAMPLES", "150")), deadline=None)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("aGk=")
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
AGENT = "/agents/A/agentAliases/B/sessions/s/text"
SAID = event_stream.event("chunk", b'{"bytes": "SGVsbG8="}')


def good() -> list[tuple[Asked, Any, str]]:
    """Return requests with their answers, and how those are sent."""
    cases = [(of_model("invoke", body, model), told, "") for _, model, body, told in INVOKED]
    streams = "invoke-with-response-stream"
    cases += [(of_model(streams, body, model), told, "chunked") for model, body, told in PIECES]
    cases.append((of_model("converse", CONVERSE), CONVERSED, ""))
    cases.append((of_model("converse-stream", CONVERSE), CONVERSED_IN_PIECES, "streamed"))
    cases.append((asked(AGENT, {"inputText": "Hi"}), [{"trace": {"agentId": "A"}}], "streamed"))
    cases.append((asked("/knowledgebases/K/retrieve", {}), {"retrievalResults": [{}]}, ""))
    cases.append((of_model("invoke", {"inputText": "Hi"}, "a.embed"), {"embedding": [1]}, ""))
    count: Any = {"input": {"converse": {"messages": []}}}
    cases.append((of_model("count-tokens", count), {"inputTokens": 1}, ""))
    return cases


GOOD = good()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a value, with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in list(inner):
        yield value, key
        if isinstance(child, dict | list):
            yield from _places(child)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Asked, Answer]:
    """Draw a request and its answer, some values of which are replaced by others."""
    request, told, how = deepcopy(draw(st.sampled_from(GOOD)))
    body = json.loads(request.body)
    for holder in (body, told):
        for _ in range(draw(st.integers(0, 3))):
            if places := list(_places(holder)):
                container, key = draw(st.sampled_from(places))
                container[key] = draw(ANYTHING)
    if how:
        events = [one for one in told if isinstance(one, dict)]
        answer = chunked(events) if how == "chunked" else streamed(events, SAID)
    else:
        answer = answered(told, draw(st.sampled_from([200, 429])))
    return request._replace(body=json.dumps(body).encode()), answer


@EXAMPLES
@given(damaged(), st.integers(0, 2**16), st.integers(0, 255))
def test_reading_never_raises(exchange: tuple[Asked, Answer], at: int, byte: int) -> None:
    """Values of other types, missing ones, and bytes that are no frames."""
    request, answer = exchange
    FORMAT.decode(request, None)
    FORMAT.decode(request, answer)
    broken = bytearray(answer.body or b"{")
    broken[at % len(broken)] = byte
    FORMAT.decode(request, Answer(answer.status, answer.headers, (bytes(broken),)))
    FORMAT.decode(request._replace(body=bytes(broken)), answer)


@EXAMPLES
@given(damaged(), st.sampled_from(["text", "calls", "document", "status", "error"]), ANYTHING)
def test_a_fork_answers_or_says_why_not(
    exchange: tuple[Asked, Answer], kind: str, document: Any
) -> None:
    """What is copied from a recorded answer may be anything, too."""
    request, recorded = exchange
    wanted = {
        "text": Wanted("Hello"),
        "calls": Wanted("", (("look", {"q": document}),)),
        "document": Wanted(document=document, has_document=True),
        "status": Wanted("no", status=500),
        "error": Wanted("no", status=424, error="modelStreamErrorException"),
    }[kind]
    try:
        made = FORMAT.encode(request, wanted, recorded)
    except UsageError:
        return
    FORMAT.decode(request, made)


@EXAMPLES
@given(
    damaged(),
    st.sampled_from(
        [
            {"model": "m.x"},
            {"prompt": "Ho"},
            {"system": "Be brief.", "temperature": 0.5},
            {"drop_message": 0},
            {"tools": ["look"]},
            {"values": {"/messages/0/content/0/text": "x"}},
        ]
    ),
)
def test_a_fork_changes_a_request_or_says_why_not(
    exchange: tuple[Asked, Answer], changes: dict[str, Any]
) -> None:
    """The agent may have sent anything."""
    request, _ = exchange
    try:
        url, body = FORMAT.reword(request, changes)
    except UsageError:
        return
    FORMAT.decode(request._replace(url=url, body=body), None)


FRAME = event_stream.encode(event_stream.event("contentBlockDelta", b'{"delta":{"text":"Hi"}}'))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (FRAME[:-1] + bytes([FRAME[-1] ^ 1]), "checksum"),
        (b"\xff" * 100, "checksum"),
        (FRAME[:-7], ""),
        (b"", ""),
        (b"<html>no frames</html>", "checksum"),
        (event_stream.encode(event_stream.event("contentBlockDelta", b"\xff\xfe{")), ""),
        (event_stream.encode(event_stream.event("contentBlockDelta", b"[" * 9999)), ""),
    ],
    ids=["flipped", "huge", "cut", "empty", "html", "not JSON", "deep"],
)
def test_show_prints_an_answer_that_cannot_be_read(
    body: bytes, error: str, tape: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent may have failed at it. The tape has its bytes, and `show` says what is wrong."""
    kind = ("content-type", event_stream.MEDIA_TYPE)
    with ByteServer(Delivery(200, [kind], [body] if body else [], chunked=True)) as server:
        client = client_at(server)
        with tracefork.record(tape):
            # botocore raises errors of many classes, or none.
            stream = client.converse_stream(modelId="m.x", messages=HELLO)["stream"]
            with closing(stream), suppress(Exception):
                list(stream)
    for words in ([], ["0"], ["0", "--json"]):
        assert main(["show", str(tape), *words]) == 0
    out = capsys.readouterr().out
    assert "Traceback" not in out
    assert ("UnreadableStream" in out) == bool(error)
    assert error in out
