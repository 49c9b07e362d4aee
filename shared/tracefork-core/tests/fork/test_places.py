"""The fork point is named by a number, by a step, or by a checkpoint that asked for nothing."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, UsageError, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_core.run.places import Place, number_of
from tracefork_testkit import ProviderServer


@pytest.fixture
def stepped(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record the steps of one agent: each asks once, and a checkpoint follows."""
    with record(tape):
        for name in ("plan", "search", "search"):
            step = begin_step("node", name)
            before = current_step.set(step)
            http.get(f"{provider.url}/bytes/3")
            current_step.reset(before)
            end_step(step)
            end_step(begin_step("checkpoint", f"after {name}"))
    return tape


@pytest.mark.parametrize(
    ("place", "n"),
    [
        (2, 2),
        ("2", 2),
        ("plan", 0),
        ("search", 1),
        ("search:2", 2),
        ("s0", 0),
        ("after plan", 1),
        ("after search", 2),
    ],
)
def test_a_place_is_found(stepped: Path, place: Place, n: int) -> None:
    """By number; by name, the second of it with `:2`; by id; after a checkpoint."""
    with Tape.open(stepped) as recorded:
        assert number_of(recorded, place) == n


@pytest.mark.parametrize("place", ["write", "search:3", "after search:2", ""])
def test_a_place_that_is_none_is_refused(stepped: Path, place: str) -> None:
    """What there is, is said; nothing comes after the last checkpoint."""
    with Tape.open(stepped) as recorded, pytest.raises(UsageError, match="plan, after plan"):
        number_of(recorded, place)
