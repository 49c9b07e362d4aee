"""Units are named by step or line, and grouped by step."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, UsageError, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_core.blaming.parts import parts_by, parts_of
from tracefork_core.blaming.trials.units import Run
from tracefork_testkit import ProviderServer


@pytest.fixture
def stepped(tmp_path: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record two tasks that make calls in a tool, and one call outside any task."""
    path = tmp_path / "run.tape"
    with record(path):
        for task in ("research", "write"):
            outer = begin_step("task", task)
            inner = begin_step("tool", "look up", parent=outer)
            before = current_step.set(inner)
            for _ in range(2 if task == "research" else 1):
                http.get(f"{provider.url}/bytes/3")
            current_step.reset(before)
            end_step(inner)
            end_step(outer)
        http.get(f"{provider.url}/bytes/4")
    return path


def test_units_are_grouped_by_their_step(stepped: Path) -> None:
    """Units of one task are one part, and a unit outside any task is a part by itself."""
    with Tape.open(stepped) as recorded:
        tasks = parts_by(recorded, ["task", "tool"])
        assert [part.units for part in tasks] == [(0, 1), (2,), (3,)]
        assert [part.step for part in tasks] == [("research",), ("write",), ()]
        assert [part.kind for part in tasks] == ["task", "task", ""]
        (tool,) = tasks[0].parts
        assert (tool.step, tool.units) == (("research", "look up"), (0, 1))
        assert [part.units for part in parts_by(recorded, ["tool"])] == [(0, 1), (2,), (3,)]
        with pytest.raises(UsageError, match=r"no step of kind .node.*kinds: task, tool"):
            parts_by(recorded, ["task", "node"])


def test_groups_are_named_by_the_steps_they_share(stepped: Path) -> None:
    """The name has the steps above all their units, from the root down."""
    with Tape.open(stepped) as recorded:
        parts = parts_of(recorded, [[1, 0], [3, 2]])
    assert [(part.units, part.step) for part in parts] == [
        ((0, 1), ("research", "look up")),
        ((2, 3), ()),
    ]


def test_a_unit_is_named_by_its_step_or_its_line(stepped: Path) -> None:
    """It is named by its steps from the root down, else by the line of code that made the call."""
    with Tape.open(stepped) as recorded:
        names = [unit.words for unit in Run.of(recorded).units]
    assert names[0].startswith("research ▸ look up")
    assert names[3].startswith("test_units.py:")


def test_a_run_without_exchanges_cannot_be_blamed(tmp_path: Path) -> None:
    """It has no unit to blame."""
    with record(tmp_path / "run.tape") as run:
        pass
    with Tape.open(run.path) as recorded, pytest.raises(UsageError, match="no exchange"):
        Run.of(recorded)


def test_an_answer_without_token_usage_has_unknown_tokens(
    tmp_path: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A stream reports them only on request; a call of no model has zero tokens."""
    question = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    told = question | {"stream_options": {"include_usage": True}}
    with record(tmp_path / "run.tape"):
        for body in (question, told):
            http.post(f"{provider.url}/v1/chat/completions", json=body)
        http.get(f"{provider.url}/bytes/3")
    with Tape.open(tmp_path / "run.tape") as recorded:
        silent, telling, other = Run.of(recorded).tokens
    assert (silent, other) == (None, 0)
    assert telling
