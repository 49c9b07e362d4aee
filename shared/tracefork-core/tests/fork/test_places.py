"""The fork point is named by a number, by a step, or by a checkpoint that asked for nothing."""

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


@pytest.fixture
def crewed(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record tasks: with agents of the same names and what asks after these, and without agents."""
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
    """`kind:name`, the second with `:2`; its answer is the last that was no check of it."""
    with Tape.open(crewed) as recorded:
        assert number_of(recorded, place) == n


@pytest.mark.parametrize("place", ["task:write", "node:plan", "agent:plan:9", "task:write:answer"])
def test_a_step_of_another_kind_is_none(crewed: Path, place: str) -> None:
    """The control: no kind finds a step of another one."""
    with Tape.open(crewed) as recorded, pytest.raises(UsageError, match="has no step"):
        number_of(recorded, place)
