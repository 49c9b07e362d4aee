"""The units of a run: what they are called, and how they are grouped by step."""

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
    """Record two tasks that ask by way of a tool, one of them twice, and a question of neither."""
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


def test_units_are_parted_by_the_step_they_are_under(stepped: Path) -> None:
    """By tasks: those of one task together, and what is under none by itself; then by tools."""
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


def test_groups_are_called_by_what_they_have_in_common(stepped: Path) -> None:
    """The steps that all their units are under, from the root down."""
    with Tape.open(stepped) as recorded:
        parts = parts_of(recorded, [[1, 0], [3, 2]])
    assert [(part.units, part.step) for part in parts] == [
        ((0, 1), ("research", "look up")),
        ((2, 3), ()),
    ]


def test_a_unit_is_named_by_its_step_or_its_line(stepped: Path) -> None:
    """The steps from the root down where there are any; else the line of code that asked."""
    with Tape.open(stepped) as recorded:
        names = [unit.words for unit in Run.of(recorded).units]
    assert names[0].startswith("research ▸ look up")
    assert names[3].startswith("test_units.py:")


def test_a_run_without_exchanges_has_no_units(tmp_path: Path) -> None:
    """There is nothing that could be to blame."""
    with record(tmp_path / "run.tape") as run:
        pass
    with Tape.open(run.path) as recorded, pytest.raises(UsageError, match="no exchange"):
        Run.of(recorded)


def test_an_answer_that_does_not_tell_its_tokens_is_not_free(
    tmp_path: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A stream tells them where it is asked to; what is no model's takes none."""
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
