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


def test_a_tape_from_before_leaves_entropy_real(tape: Path, alter: Alter) -> None:
    """A tape without a seed replays: its clock as recorded, its entropy real."""
    with record(tape):
        first = draw()
    alter(tape, events=lambda line: re.sub(rb'"(seed|ambient|generators)"', rb'"was_\1"', line))
    with replay(tape) as run:
        assert not set(draw()) & set(first)
    assert run.entropy_misses == 0


def test_the_seed_is_there_before_what_depends_on_it(
    tape: Path, written: Callable[[Path], bytes]
) -> None:
    """One seed, and one state of the generator, however many draws there are."""
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


def test_a_run_without_chance_costs_a_seed(tape: Path) -> None:
    """The state of a generator that nobody used is not on the tape."""
    with record(tape):
        pass
    with Tape.open(tape) as opened:
        assert opened.chance.generators == []
        assert opened.draws == []


@pytest.mark.parametrize("mode", ["safe", "raw", "sealed", "metadata"])
def test_who_cannot_replay_a_tape_cannot_foresee_its_secrets(
    tape: Path, own_key: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A metadata tape holds no seed; that of a sealed one is sealed like all of it."""
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
def test_a_damaged_state_is_refused(
    tape: Path, alter: Alter, pattern: bytes, instead: bytes
) -> None:
    """Too short, empty, or a position that would make C code read past its end."""
    with record(tape):
        draw()
    alter(tape, events=lambda line: re.sub(pattern, instead, line))
    with pytest.raises(TapeError, match="state of the generator 'random'"), replay(tape):
        raise AssertionError("it started")


def test_masking_leaves_the_seed_alone(tape: Path) -> None:
    """A pattern that matches everything masks no state: the masked tape replays."""
    with record(tape, mask=["re:[A-Za-z0-9+/]{30}"]):
        first = draw()
    with replay(tape, mask=["re:[A-Za-z0-9+/]{30}"]):
        assert draw() == first
