"""A delta restores its body, for any body and any base."""

from __future__ import annotations

import json
import random
from pathlib import Path

import httpx2
from hypothesis import example, given
from hypothesis import strategies as st

from tracefork_core import Tape, record
from tracefork_core.tape import delta
from tracefork_testkit import ProviderServer

PARTS = st.sampled_from([b'{"role":"user"}', b"\\n", b"\n", b"a" * 60, b"b" * 48, b"", b"\x00\xff"])
BODIES = st.one_of(st.binary(max_size=400), st.lists(PARTS, max_size=40).map(b"".join))


def applied(pieces: list[list[int]], new: bytes, base: bytes) -> bytes:
    """Apply a delta as its definition says."""
    parts, place = [], 0
    for piece in pieces:
        if len(piece) == 1:
            parts.append(new[place : place + piece[0]])
            place += piece[0]
        else:
            parts.append(base[piece[0] : piece[0] + piece[1]])
    assert place == len(new)
    return b"".join(parts)


def check(data: bytes, base: bytes) -> list[list[int]]:
    """Fail unless a delta is well-formed and restores its body."""
    pieces = delta.difference(data, base)
    new = delta.fresh(data, pieces)
    assert all(len(piece) in (1, 2) and piece[-1] > 0 and min(piece) >= 0 for piece in pieces)
    assert all(sum(piece) <= len(base) for piece in pieces if len(piece) == 2)
    assert sum(piece[-1] for piece in pieces) == len(data)
    assert len(new) + delta.copied(pieces) == len(data)
    assert applied(pieces, new, base) == data
    return pieces


@given(BODIES, BODIES)
@example(b"", b"")
@example(b"x", b"")
@example(b"ab" * 100, b"ab" * 99)
def test_a_delta_restores_its_body(data: bytes, base: bytes) -> None:
    """Its pieces lie inside the base, and never add up to more than the body."""
    check(data, base)


@given(BODIES, BODIES, BODIES)
def test_an_insertion_stores_only_the_inserted_bytes(
    head: bytes, middle: bytes, tail: bytes
) -> None:
    """At most two short ends are stored with them."""
    data, base = head + middle + tail, head + tail
    pieces = check(data, base)
    assert len(delta.fresh(data, pieces)) <= len(middle) + 2 * 48


def test_a_growing_transcript_stores_only_the_new_message() -> None:
    """Negative control: a body that shares nothing with its base is stored whole."""
    messages = [{"role": "user", "content": f"message {i} " * 20} for i in range(50)]
    base = json.dumps(messages[:-1]).encode()
    data = json.dumps(messages).encode()
    assert len(delta.fresh(data, check(data, base))) < 2 * len(json.dumps(messages[-1]))
    noise = random.Random(1).randbytes(len(base))
    assert delta.fresh(data, check(data, noise)) == data


def test_a_delta_of_a_delta_with_a_thousand_pieces_is_read(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The limits against bombs must not refuse such a body."""

    def listed(step: int) -> bytes:
        chance = random.Random(step)
        items = [
            {"same": {"text": f"piece {i}, " * 30}, "new": {"t": t, "at": "a place"}}
            for i, t in enumerate(chance.random() * 10**30 for _ in range(1000))
        ]
        return json.dumps(items).encode()

    with record(tape):
        for step in range(3):
            http.post(f"{provider.url}/status/201", content=listed(step))
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[2].request_body == listed(2)
        blobs = [event for event in recorded.events if event.kind == "blob"]
        assert any(json.loads(bytes(event.aside)).get("base") for event in blobs)
