"""A secret in a stream is masked, and the frames around it stay frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_core.providers import model_call
from tracefork_testkit.http1 import Delivery

from .conftest import HELLO, ByteServer, client_at
from .test_reading import CONVERSED_IN_PIECES
from .test_reading_makers import PIECES
from .wire import chunked, streamed

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
MASKED = "tracefork-secret-openai_key"


def with_key(events: Any) -> Any:
    """Return events whose text has a key in it."""
    return json.loads(json.dumps(events).replace("Hel", f"It is {KEY}. ").replace("Found", KEY))


def test_a_stream_with_a_secret_replays_through_the_parser_of_boto3(tape: Path) -> None:
    """The length of a frame and its checksums are those of what is on the tape."""
    model, body, events = PIECES[0]
    sent = [streamed(with_key(CONVERSED_IN_PIECES)), chunked(with_key(events))]
    deliveries = [Delivery(one.status, [*one.headers], [*one.chunks], chunked=True) for one in sent]

    def run() -> tuple[Any, Any]:
        told = client.converse_stream(modelId=model, messages=HELLO)["stream"]
        invoked = client.invoke_model_with_response_stream(modelId=model, body=json.dumps(body))
        return list(told), [json.loads(event["chunk"]["bytes"]) for event in invoked["body"]]

    with ByteServer(*deliveries) as server:
        client = client_at(server)
        with tracefork.record(tape):
            live = run()
    with tracefork.replay(tape):
        again = run()
    assert KEY in str(live[0])
    assert KEY in str(live[1])
    assert json.dumps(live).replace(KEY, MASKED) == json.dumps(again)
    with tracefork.Tape.open(tape) as opened:
        calls = [model_call(exchange) for exchange in opened.exchanges]
    assert all(call is not None and MASKED in call.text for call in calls)
    assert KEY.encode() not in tape.read_bytes()
