"""A fork point can be named by a number, a step or a checkpoint."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, UsageError, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_core.run.fork_point import Place, number_of
from tracefork_testkit import ProviderServer


@pytest.fixture
def stepped(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record the steps of one agent: each makes one call, and a checkpoint follows."""
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
def test_places_are_found(stepped: Path, place: Place, n: int) -> None:
    """By number, by name (`:2` for the second), by id, or after a checkpoint."""
    with Tape.open(stepped) as recorded:
        assert number_of(recorded, place) == n


@pytest.mark.parametrize("place", ["write", "search:3", "after search:2", ""])
def test_an_unknown_place_is_refused_with_the_known_steps(stepped: Path, place: str) -> None:
    """No exchange follows the last checkpoint, so that is no place either."""
    with Tape.open(stepped) as recorded, pytest.raises(UsageError, match="plan, after plan"):
        number_of(recorded, place)


@pytest.fixture
def crewed(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record tasks with agents of equal names and calls after theirs, and tasks without agents."""
    under = {
        "plan": ["agent plan"],
        "task": ["agent plan", "agent plan", "guardrail g", "memory m", "model m", "callback c"],
        "lone": ["model m", "tool t"],
    }

    def ask(kind: str, name: str, inside: list[str], parent: str | None = None) -> None:
        step = begin_step(kind, name, parent=parent)
        before = current_step.set(step)
        if not inside:
            http.get(f"{provider.url}/bytes/3")
        for one in inside:
            inner, called = one.split()
            ask(inner, called, [], step)
        current_step.reset(before)
        end_step(step)

    with record(tape):
        for name in ("plan", "task", "plan", "lone"):
            ask("task", name, under[name])
    return tape


@pytest.mark.parametrize(
    ("place", "n"),
    [
        ("task:plan", 0),
        ("task:plan:2", 7),
        ("agent:plan", 0),
        ("agent:plan:2", 1),
        ("plan:3", 1),
        ("task:task", 1),
        ("task:task:answer", 2),
        ("task:1", 1),
        ("task:plan:2:answer", 7),
        ("task:answer", 2),
        ("guardrail:g:answer", 3),
        ("callback:c:answer", 6),
        ("task:lone:answer", 9),
    ],
)
def test_a_step_is_found_by_its_kind(crewed: Path, place: str, n: int) -> None:
    """`kind:name`, `:2` for the second; `:answer` is the last call that is no check of it."""
    with Tape.open(crewed) as recorded:
        assert number_of(recorded, place) == n


@pytest.mark.parametrize("place", ["task:write", "node:plan", "agent:plan:9", "task:write:answer"])
def test_a_kind_does_not_match_steps_of_another_kind(crewed: Path, place: str) -> None:
    """The negative control."""
    with Tape.open(crewed) as recorded, pytest.raises(UsageError):
        number_of(recorded, place)
