"""Recordings, documents and requests of any shape are answered, edited, or refused."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core.errors import UsageError
from tracefork_core.providers import Answer
from tracefork_core.providers.answering import answer, from_document
from tracefork_core.providers.asking import edit

from .asked import EVERY_WAY, WAYS, Ask
from .test_hostile_bytes import VALUES, WORDS

OBJECTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6)
CHANGES: list[dict[str, Any]] = [
    {"model": "m"},
    {"temperature": 1.0},
    {"system": "s"},
    {"prompt": "p"},
    {"drop_message": 0},
    {"drop_message": -1},
    {"tools": []},
    {"set": {"/messages/0/content/0/text": 1}},
]
EXAMPLES = int(os.environ.get("TRACEFORK_EXAMPLES", "100"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(st.sampled_from(EVERY_WAY), st.lists(OBJECTS, min_size=1, max_size=4), st.booleans())
def test_any_recording_can_be_answered_after(way: str, found: list[Any], events: bool) -> None:
    """Whatever the recorded answer is, the new answer is read back."""
    lines = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in found]
    body = b"".join(lines) if events else json.dumps(found[0]).encode()
    kind = "text/event-stream" if events else "application/json"
    before = Answer(200, (("content-type", kind),), (body,))
    request = WAYS[way]
    read = request.read(answer(request, before, text="yo", tool_calls=[("f", {"a": 1})]))
    assert read.text == "yo"
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("f", {"a": 1})]


@MANY
@given(st.sampled_from(EVERY_WAY), OBJECTS)
def test_any_document_is_sent_or_refused(way: str, document: Any) -> None:
    """A document with wrong types is sent as far as possible, or refused with a UsageError."""
    request = WAYS[way]
    for field in ("choices", "output", "content", "candidates"):
        with suppress(UsageError):
            request.read(from_document(request, {field: document.get("content"), **document}))


@MANY
@given(st.sampled_from(EVERY_WAY), OBJECTS, st.sampled_from(CHANGES))
def test_any_request_is_edited_or_refused(way: str, body: Any, change: dict[str, Any]) -> None:
    """A request with wrong types is edited, or refused with a UsageError."""
    with suppress(UsageError):
        url, changed = edit(Ask(WAYS[way].url, json.dumps(body).encode()), **change)
        assert url
        assert isinstance(json.loads(changed), dict)
