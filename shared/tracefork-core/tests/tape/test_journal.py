"""A torn or corrupt journal can be read up to the damage."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core.tape import journal
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    RequestRecord,
    ResponseRecord,
)
from tracefork_core.tape.journal import Flight, Journal

NUMBERS = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), NUMBERS, st.binary(max_size=40)),
        st.tuples(st.just("head"), NUMBERS, st.just(b"")),
        st.tuples(st.just("chunk"), NUMBERS, st.binary(max_size=40)),
        st.tuples(st.just("end"), NUMBERS, st.just(b"")),
    ),
    max_size=25,
)


def payload(n: int, response: ResponseRecord | None = None) -> ExchangePayload:
    return ExchangePayload(n, RequestRecord("POST", "http://x/", [], ""), response)


def written(tape: Path, steps: list[Any]) -> list[bytes]:
    """Write a journal, and return the bytes of its file after each step."""
    opened, states = Journal(tape), [b""]
    begun: set[int] = set()
    for turn, (step, n, data) in enumerate(steps):
        if step == "begin":
            opened.begin(payload(n), ExchangeAside("main", "httpx", turn), data)
            begun.add(n)
        elif n in begun and step == "head":
            head = ResponseRecord(200, "OK", [], "")
            opened.head(payload(n, head), ExchangeAside("main", "httpx", turn))
        elif n in begun and step == "chunk":
            opened.chunk(n, turn, data)
        elif step == "end":
            opened.end(n)
            begun.discard(n)
        states.append((tape.with_name(tape.name + "-flight")).read_bytes())
    opened.close(remove=True)
    return states


def read(tape: Path, data: bytes) -> list[Flight]:
    tape.with_name(tape.name + "-flight").write_bytes(data)
    return journal.read(tape)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS, data=st.data())
def test_a_torn_journal_reads_up_to_the_tear(
    tape: Path, steps: list[Any], data: st.DataObject
) -> None:
    """Cut at any byte, it holds exactly the frames that were complete."""
    states = written(tape, steps)
    last = states[-1]
    cut = data.draw(st.integers(0, len(last)))
    whole = max((state for state in states if last[:cut].startswith(state)), key=len)
    assert read(tape, last[:cut]) == read(tape, whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(noise=st.binary(max_size=200), steps=STEPS)
def test_a_corrupt_journal_reads_up_to_the_corruption(
    tape: Path, noise: bytes, steps: list[Any]
) -> None:
    """Bytes after complete frames raise no error and remove no frame."""
    whole = written(tape, steps)[-1]
    kept = {flight.n for flight in read(tape, whole)}
    assert kept <= {flight.n for flight in read(tape, whole + b"\xff" + noise)}


@pytest.mark.parametrize("size", [-1, 41, 2**31, 2**62, 2**64, 1.5, "1", None, [1]])
def test_a_frame_that_lies_about_its_size_ends_the_journal(tape: Path, size: Any) -> None:
    """Nothing beyond the file is read, and the frames before it remain."""
    good = b'{"n":0,"size":2,"payload":{},"aside":{}}\nab'
    lie = (
        json.dumps({"n": 1, "size": size, "payload": {}, "aside": {}}).encode() + b"\n" + b"x" * 40
    )
    assert [(flight.n, flight.body) for flight in read(tape, good + lie)] == [(0, b"ab")]


@pytest.mark.parametrize("start", [b"", b'{"n":0,"size":3000000000,"payload":{},"aside":{}}\n'])
def test_a_journal_of_any_size_is_read_within_bounds(tmp_path: Path, start: bytes) -> None:
    """A stranger can send a sparse file of 3 GB at no cost."""
    tape = tmp_path / "run.tape"
    with Path(f"{tape}-flight").open("wb") as file:
        file.write(start)
        file.truncate(3_000_000_000)
    tracemalloc.start()
    try:
        assert journal.read(tape) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000


def test_a_pipe_is_not_read_as_a_journal(tmp_path: Path) -> None:
    """Opening a pipe would wait for a writer, and a device never ends."""
    tape = tmp_path / "run.tape"
    os.mkfifo(f"{tape}-flight")
    assert journal.read(tape) == []
    Path(f"{tape}-flight").unlink()
    Path(f"{tape}-flight").symlink_to("/dev/zero")
    assert journal.read(tape) == []
