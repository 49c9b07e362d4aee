"""Server-sent events: lines, fields and chunk boundaries as in the standard."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracefork_core.providers import SseDecoder, SseEvent

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b"event: first\r\ndata: one\r\ndata: two\r\nid: 7\r\n\r\n"
    b"data:no space\n\n"
    b"data:  two spaces\r\r"
    b"data: line\xe2\x80\xa8separator\n\n"
    b"event: empty\n\n"
    b"data\n\n"
    b"retry: 5\nunknown: x\ndata: [DONE]\n\n"
)
EVENTS = [
    SseEvent("one\ntwo", "first", "7"),
    SseEvent("no space", "message", "7"),
    SseEvent(" two spaces", "message", "7"),
    SseEvent("line\u2028separator", "message", "7"),
    SseEvent("", "message", "7"),
    SseEvent("[DONE]", "message", "7"),
]


def test_events_are_split_as_the_standard_says() -> None:
    """CRLF, LF and CR end lines, U+2028 does not; comments and events without data are dropped."""
    decoder = SseDecoder()
    assert decoder.feed(STREAM) == EVENTS
    assert decoder.close() == []


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_chunk_boundaries_change_nothing(cuts: list[int]) -> None:
    """Also boundaries inside characters and line ends."""
    decoder = SseDecoder()
    edges = [0, *sorted(cuts), len(STREAM)]
    found = [
        event
        for start, end in itertools.pairwise(edges)
        for event in decoder.feed(STREAM[start:end])
    ]
    assert found == EVENTS


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    """A complete event does not wait for later bytes."""
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent("a")]
    assert decoder.feed(b"\ndata: b") == []
    assert decoder.feed(b"\n\n") == [SseEvent("b")]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r\n"])
def test_an_event_cut_off_is_given_only_at_the_end(tail: bytes) -> None:
    """The standard drops an unfinished event; closing the decoder returns it."""
    decoder = SseDecoder()
    assert decoder.feed(b"data: half" + tail) == []
    assert decoder.close() == [SseEvent("half")]


def test_broken_utf8_is_replaced() -> None:
    """An invalid byte replaces only its own character."""
    assert SseDecoder().feed(b"data: a\xffb\n\n") == [SseEvent("a\ufffdb")]
