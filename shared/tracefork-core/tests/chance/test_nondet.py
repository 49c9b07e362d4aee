"""Chance that is asked for by name, with nothing of the process patched."""

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
def test_what_it_gives_is_given_again(tape: Path, *, patched: bool) -> None:
    """With the clock and the entropy of the process on the tape too, or real."""
    with record(tape, clock=patched, entropy=patched) as recording:
        first = drawn(recording.nondet) + drawn(recording.nondet)
    with replay(tape) as run:
        assert drawn(run.nondet) + drawn(run.nondet) == first
    assert (run.clock_misses, run.entropy_misses) == (0, 0)
    with record(tape, overwrite=True) as recording:
        assert not {*map(str, drawn(recording.nondet))} & {*map(str, first)}


def test_it_patches_nothing_and_its_draws_are_all_there_is(tape: Path) -> None:
    """Switched off, clock and entropy stay real in the replay too, though the tape has draws."""
    with record(tape, clock=False, entropy=False) as recording:
        recording.nondet.now()
        assert recording.nondet.urandom(3) != os.urandom(3)
        real = os.urandom(8), dt.datetime.now(dt.UTC)
    with Tape.open(tape) as opened:
        site = f"{__name__}:test_it_patches_nothing_and_its_draws_are_all_there_is"
        assert [(reads.source, reads.site) for reads in opened.draws] == [
            ("clock", site),
            ("entropy", site),
        ]
    with replay(tape) as run:
        assert os.urandom(8) != real[0]
        assert dt.datetime.now(dt.UTC) > real[1]
        run.nondet.now()
    assert run.clock_misses == 0


def test_the_values_have_their_kinds(tape: Path) -> None:
    """An aware time, a UUID of version 4, a number below one, one of the options."""
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
        with pytest.raises(IndexError, match="empty"):
            run.nondet.choice([])
        with pytest.raises(ValueError, match="no -1 bytes"):
            run.nondet.urandom(-1)


@pytest.mark.parametrize("drifts", [False, True])
def test_a_drifting_source_makes_the_replay_diverge(
    tape: Path, provider: ProviderServer, http: httpx2.Client, *, drifts: bool
) -> None:
    """The negative control, beside the source of the run that does not drift."""

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


def test_a_source_ends_with_its_run(tape: Path) -> None:
    """Afterwards, and in a forked child, it says so instead of giving what is on no tape."""

    def refused() -> None:
        with pytest.raises(UsageError):
            run.nondet.uuid()

    with record(tape) as run:
        assert os.waitpid(fork(refused), 0)[1] == 0
    with pytest.raises(UsageError, match="has ended"):
        run.nondet.uuid()
