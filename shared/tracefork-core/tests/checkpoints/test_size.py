"""The size of a file grows with new data only, and so does the time to read it."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracefork_core.checkpoints.store import CheckpointFile, in_memory
from tracefork_core.tape.delta import aligned, fresh

from .conftest import body_of, grow, put, transcript

DOCUMENT = bytes(range(256)) * 20


def size(path: Path, steps: int) -> int:
    store = CheckpointFile(path)
    grow(store, transcript(steps))
    store.close()
    return path.stat().st_size


def test_a_growing_thread_grows_linearly(tmp_path: Path) -> None:
    """Four times the steps take four times the bytes, not sixteen; a step takes about its text."""
    few, many = size(tmp_path / "few.tape", 40), size(tmp_path / "many.tape", 160)
    assert many < 4.5 * few
    assert many < 160 * 1100


def test_messages_with_a_common_end_grow_linearly(tmp_path: Path) -> None:
    """An end that all messages share does not start their chain again."""
    rng = random.Random(0)
    store = CheckpointFile(tmp_path / "alike.tape")
    end = b"the end of each " * 5
    grow(store, list(accumulate(rng.randbytes(400) + end for _ in range(320))))
    store.close()
    assert (tmp_path / "alike.tape").stat().st_size < 320 * 1250


@pytest.mark.parametrize(
    "change",
    [
        lambda n: DOCUMENT,
        lambda n: DOCUMENT[: 17 * n] + b"!" + DOCUMENT[17 * n :],
        lambda n: DOCUMENT[31 * n :],
        lambda n: DOCUMENT[: 5 * n] + DOCUMENT[7 * n :],
        lambda n: bytes([n]) + DOCUMENT,
        lambda n: (b"%d" % n) * 2000,
        lambda n: b"",
    ],
)
def test_changed_values_read_as_they_were_put(change: object) -> None:
    """Values that are edited, cut, or have nothing in common come back unchanged."""
    assert callable(change)
    store = in_memory()
    values = [change(n) for n in range(40)]
    grow(store, values)
    cold = in_memory()
    grow(cold, values)
    cold._bodies.forget()
    for n, expected in enumerate(values):
        assert body_of(store, f"{n:04}", "messages") == expected
        assert body_of(cold, f"{n:04}", "messages") == expected


def test_a_value_that_is_edited_often_can_be_read() -> None:
    """A chain of edits ends before it exceeds the limit of its reader."""
    rng = random.Random(0)
    document = bytearray(rng.randbytes(100_000))
    store = in_memory()
    parent = None
    for n in range(600):
        document.insert(rng.randrange(len(document)), n % 256)
        put(store, f"{n:04}", parent, messages=bytes(document))
        parent = f"{n:04}"
    for n in (599, 550):
        store._bodies.forget()
        assert len(body_of(store, f"{n:04}", "messages")) == 100_001 + n


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300), st.booleans())
def test_a_delta_rebuilds_the_value(one: bytes, two: bytes, three: bytes, doubled: bool) -> None:
    """Its copies and its new bytes, in order, are the value."""
    base = one + two * (2 if doubled else 1) + three
    for data in (three + one + two, one + three, two + base, base[10:], b"", base):
        pieces = aligned(data, base)
        new, made, taken = fresh(data, pieces), [], 0
        for piece in pieces:
            if len(piece) == 2:
                made.append(base[piece[0] : sum(piece)])
            else:
                made.append(new[taken : taken + piece[0]])
                taken += piece[0]
        assert b"".join(made) == data


def test_a_repeated_value_is_stored_once(tmp_path: Path) -> None:
    """In forty checkpoints it takes the space of one."""
    store = CheckpointFile(tmp_path / "one.tape")
    document = transcript(1, 50_000)[0]
    for n in range(40):
        put(store, f"{n:04}", document=document)
    store.close()
    assert store.path is not None
    assert store.path.stat().st_size < 110_000
