"""The agent that blame is validated with works as intended: only planted faults make it fail.

Without this, finding a fault would prove nothing.
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
    """Record a run without a failure."""
    path = tmp_path_factory.mktemp("clean") / "clean.tape"
    for attempt in range(9):
        subject.begin(f"clean {attempt}")
        with record(path, overwrite=True):
            answer = subject.run()
        if subject.good(answer) and not subject.slips:
            return path
    raise AssertionError(answer)


def planted(subject: Subject, clean: Path, one: Plant, what: str, draw: int) -> bool:
    """Fork with a planted fault or its placebo; return whether the run is good."""
    path = clean.with_name(f"{what}-{one.fault}-{one.unit}-{draw}.tape")
    subject.begin(path.name)
    change = one.change if what == "fault" else one.placebo
    with fork(clean, one.unit, change={one.unit: change}, writes="allow", to=path):
        answer = subject.run()
    return subject.good(answer)


def test_the_run_has_the_documented_exchanges(clean: Path) -> None:
    """Calls of tools and models alternate, and the steps for faults are among them."""
    with Tape.open(clean) as tape:
        asked = [one.url.removeprefix("tool:") for one in tape.exchanges]
    assert len(asked) == len(STEPS)
    assert asked[::2] == list(STEPS[::2])
    assert all(url.endswith("/chat/completions") for url in asked[1::2])
    assert {STEPS[unit].partition(": ")[2] for unit in COINS} == set(COINS.values())


@pytest.mark.parametrize("one", PLANTS, ids=lambda one: f"{one.fault}@{one.unit}")
def test_a_fault_fails_the_run_and_its_paraphrase_does_not(
    subject: Subject, clean: Path, one: Plant
) -> None:
    """A fault mostly fails the run, whatever else is drawn; its placebo never does."""
    good = [planted(subject, clean, one, "fault", draw) for draw in range(DRAWS)]
    assert sum(good) <= DRAWS // 2
    for draw in range(2):
        assert planted(subject, clean, one, "placebo", draw) or subject.slips


@pytest.mark.parametrize("stage", COINS.values())
def test_a_coin_falls_either_way(subject: Subject, stage: str) -> None:
    """A stage that tosses a coin fails some runs but not all."""
    subject.begin(f"coin {stage}", stage)
    good = [subject.good(subject.run()) for _ in range(16)]
    assert 3 <= sum(good) <= 12
