"""What a tape holds of entropy, and what it must not hold."""

from __future__ import annotations

import os
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tracefork_core import Tape, TapeError, record, replay

from ..conftest import Alter


def draw() -> tuple[object, ...]:
    return uuid.uuid4(), os.urandom(4), random.random()


def test_a_tape_without_a_seed_leaves_entropy_real(tape: Path, alter: Alter) -> None:
    """An older tape replays with its recorded clock."""
    with record(tape):
        first = draw()
    alter(tape, events=lambda line: re.sub(rb'"(seed|ambient|generators)"', rb'"was_\1"', line))
    with replay(tape) as run:
        assert not set(draw()) & set(first)
    assert run.entropy_misses == 0


def test_a_tape_holds_one_seed_and_one_generator_state(
    tape: Path, written: Callable[[Path], bytes]
) -> None:
    """However many draws there are."""
    with record(tape):
        for _ in range(5):
            draw()
    with Tape.open(tape) as opened:
        chance = opened.chance
        assert chance.ambient == ["clock", "entropy"]
        assert chance.seed is not None
        assert len(chance.seed) == 32
        assert [(state.name, state.lane) for state in chance.generators] == [("random", "main")]
        assert [reads.values for reads in chance.reads if reads.source == "entropy"] == [[10]]
    assert written(tape).count(b'"seed":"') == 1


def test_a_run_without_draws_stores_only_a_seed(tape: Path) -> None:
    """A generator that was not used has no state on the tape."""
    with record(tape):
        pass
    with Tape.open(tape) as opened:
        assert opened.chance.generators == []
        assert opened.draws == []


@pytest.mark.parametrize("mode", ["safe", "raw", "sealed", "metadata"])
def test_a_tape_that_cannot_be_replayed_reveals_no_seed(
    tape: Path, own_key: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A metadata tape holds none; that of a sealed tape is sealed."""
    readers = [own_key] if mode == "sealed" else []
    with record(tape, mode=mode, seal_to=readers):  # type: ignore[arg-type]
        draw()
    with Tape.open(tape) as opened:
        chance = opened.chance
    assert (chance.seed is None) is (mode == "metadata")
    assert (chance.generators == []) is (mode == "metadata")
    if mode == "sealed":
        monkeypatch.delenv("TRACEFORK_IDENTITY")
        with Tape.open(tape) as opened, pytest.raises(TapeError, match="sealed"):
            _ = opened.chance


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (rb'"state":"[^"]{8}', b'"state":"'),
        (rb'"state":"[^"]*', b'"state":"'),
        (rb'[^"]{8}"}]', b'/////w=="}]'),
    ],
)
def test_a_corrupt_generator_state_is_refused(
    tape: Path, alter: Alter, pattern: bytes, instead: bytes
) -> None:
    """Too short, empty, or with a position that makes C code read past the end."""
    with record(tape):
        draw()
    alter(tape, events=lambda line: re.sub(pattern, instead, line))
    with pytest.raises(TapeError), replay(tape):
        raise AssertionError("it started")


def test_masking_does_not_change_the_seed(tape: Path) -> None:
    """A tape masked with a pattern that matches everything replays."""
    with record(tape, mask=["re:[A-Za-z0-9+/]{30}"]):
        first = draw()
    with replay(tape, mask=["re:[A-Za-z0-9+/]{30}"]):
        assert draw() == first
