"""`run.nondet` gives recorded values, with nothing of the process patched."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import httpx2
import pytest

from tracefork_core import (
    DivergenceError,
    Drifting,
    NondetSource,
    Tape,
    UsageError,
    record,
    replay,
)
from tracefork_testkit import ProviderServer

from ..forking import fork


def drawn(chance: NondetSource) -> list[object]:
    return [
        chance.now(),
        chance.uuid(),
        chance.random(),
        [chance.choice("abcdef") for _ in range(9)],
        chance.urandom(6),
    ]


@pytest.mark.parametrize("patched", [False, True])
def test_values_of_nondet_replay(tape: Path, *, patched: bool) -> None:
    """With clock and entropy of the process recorded, too, or real."""
    with record(tape, clock=patched, entropy=patched) as recording:
        first = drawn(recording.nondet) + drawn(recording.nondet)
    with replay(tape) as run:
        assert drawn(run.nondet) + drawn(run.nondet) == first
    assert (run.clock_misses, run.entropy_misses) == (0, 0)
    with record(tape, overwrite=True) as recording:
        assert not {*map(str, drawn(recording.nondet))} & {*map(str, first)}


def test_nondet_patches_nothing(tape: Path) -> None:
    """With clock and entropy off, both stay real in the replay, though the tape has draws."""
    with record(tape, clock=False, entropy=False) as recording:
        recording.nondet.now()
        assert recording.nondet.urandom(3) != os.urandom(3)
        real = os.urandom(8), dt.datetime.now(dt.UTC)
    with Tape.open(tape) as opened:
        site = f"{__name__}:test_nondet_patches_nothing"
        assert [(reads.source, reads.site) for reads in opened.draws] == [
            ("clock", site),
            ("entropy", site),
        ]
    with replay(tape) as run:
        assert os.urandom(8) != real[0]
        assert dt.datetime.now(dt.UTC) > real[1]
        run.nondet.now()
    assert run.clock_misses == 0


def test_values_of_nondet_have_their_types(tape: Path) -> None:
    """An aware datetime, a UUID of version 4, a float below one, an option, bytes."""
    with record(tape) as run:
        before = dt.datetime.now(dt.UTC)
        now, new_id, number, options, data = drawn(run.nondet)
        assert isinstance(now, dt.datetime)
        assert before - dt.timedelta(milliseconds=1) <= now <= dt.datetime.now(dt.UTC)
        assert getattr(new_id, "version", None) == 4
        assert isinstance(number, float)
        assert 0 <= number < 1
        assert isinstance(options, list)
        assert set(options) <= set("abcdef")
        assert isinstance(data, bytes)
        assert len(data) == 6
        with pytest.raises(IndexError):
            run.nondet.choice([])
        with pytest.raises(ValueError, match="-1"):
            run.nondet.urandom(-1)


@pytest.mark.parametrize("drifts", [False, True])
def test_a_drifting_source_makes_the_replay_diverge(
    tape: Path, provider: ProviderServer, http: httpx2.Client, *, drifts: bool
) -> None:
    """The negative control, beside `run.nondet`, which does not drift."""

    def agent(chance: NondetSource) -> None:
        http.post(f"{provider.url}/echo", json={"prompt": str(chance.uuid())})

    with record(tape) as recording:
        agent(Drifting() if drifts else recording.nondet)
    if not drifts:
        with replay(tape) as run:
            agent(run.nondet)
        assert run.digest == recording.digest
        return
    with pytest.raises(DivergenceError), replay(tape):
        agent(Drifting())


def test_nondet_is_refused_after_its_run(tape: Path) -> None:
    """And in a forked child: its values would be on no tape."""

    def refused() -> None:
        with pytest.raises(UsageError):
            run.nondet.uuid()

    with record(tape) as run:
        assert os.waitpid(fork(refused), 0)[1] == 0
    with pytest.raises(UsageError):
        run.nondet.uuid()
