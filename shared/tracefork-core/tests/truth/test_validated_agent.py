"""The agent that blame is validated with does what it is taken to do: faults doom it, all else not.

Without this, a fault that was found would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core import Tape, fork, record
from tracefork_testkit import validation
from tracefork_testkit.validation import COINS, STEPS, Plant, Subject

PLANTS = list(validation.plants())
DRAWS = 7


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    with validation.subject(seed=7) as found:
        yield found


@pytest.fixture(scope="module")
def clean(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a run in which nothing goes wrong."""
    path = tmp_path_factory.mktemp("clean") / "clean.tape"
    for attempt in range(9):
        subject.begin(f"clean {attempt}")
        with record(path, overwrite=True):
            answer = subject.run()
        if subject.good(answer) and not subject.slips:
            return path
    raise AssertionError(answer)


def planted(subject: Subject, clean: Path, one: Plant, what: str, draw: int) -> bool:
    """Plant something once; return whether the run is good."""
    path = clean.with_name(f"{what}-{one.fault}-{one.unit}-{draw}.tape")
    subject.begin(path.name)
    change = one.change if what == "fault" else one.placebo
    with fork(clean, one.unit, change={one.unit: change}, writes="allow", to=path):
        answer = subject.run()
    return subject.good(answer)


def test_the_run_has_the_exchanges_that_are_told(clean: Path) -> None:
    """Tools and models take turns, as the places where faults are planted are named."""
    with Tape.open(clean) as tape:
        asked = [one.url.removeprefix("tool:") for one in tape.exchanges]
    assert len(asked) == len(STEPS)
    assert asked[::2] == list(STEPS[::2])
    assert all(url.endswith("/chat/completions") for url in asked[1::2])
    assert {STEPS[unit].partition(": ")[2] for unit in COINS} == set(COINS.values())


@pytest.mark.parametrize("one", PLANTS, ids=lambda one: f"{one.fault}@{one.unit}")
def test_a_fault_dooms_the_run_and_its_paraphrase_does_not(
    subject: Subject, clean: Path, one: Plant
) -> None:
    """What is planted mostly fails the run, whatever else is drawn; what replaces it never does."""
    good = [planted(subject, clean, one, "fault", draw) for draw in range(DRAWS)]
    assert sum(good) <= DRAWS // 2
    for draw in range(2):
        assert planted(subject, clean, one, "placebo", draw) or subject.slips


@pytest.mark.parametrize("stage", COINS.values())
def test_a_coin_falls_either_way(subject: Subject, stage: str) -> None:
    """A stage that is tossed at fails the run sometimes, and sometimes not."""
    subject.begin(f"coin {stage}", stage)
    good = [subject.good(subject.run()) for _ in range(16)]
    assert 3 <= sum(good) <= 12
