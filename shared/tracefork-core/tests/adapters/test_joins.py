"""A step that joins branches names the steps that it waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import begin_step, current_step, end_step, tool_exchange
from tracefork_core.cli.main import main


def join() -> None:
    """Run two branches and what puts their results together."""
    branches = []
    for name in ("left", "right"):
        branches.append(begin_step("node", name))
        end_step(branches[-1])
    joined = begin_step("node", "join", after=[one for one in branches if one])
    token = current_step.set(joined)
    tool_exchange("add", {}, lambda: 3)
    current_step.reset(token)
    end_step(joined)


def test_a_join_has_several_steps_before_it(
    tape: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape holds their ids, and the page of an exchange in it their names."""
    with tracefork.record(tape):
        join()
    with tracefork.Tape.open(tape) as opened:
        left, right, joined = opened.steps
        assert joined.detail == {"after": [left.id, right.id]}
        assert "after" not in left.detail
    monkeypatch.setattr("sys.argv", ["tracefork", "show", str(tape), "0"])
    main()
    assert "join, after left, right" in capsys.readouterr().out


def test_a_step_may_come_after_one_other(
    tape: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn of an agent that answers another agent, say: it joins nothing."""
    with tracefork.record(tape):
        asked = begin_step("agent", "writer")
        answered = begin_step("agent", "critic", after=[asked or ""])
        token = current_step.set(answered)
        tool_exchange("add", {}, lambda: 3)
        current_step.reset(token)
    monkeypatch.setattr("sys.argv", ["tracefork", "show", str(tape), "0"])
    main()
    shown = capsys.readouterr().out
    assert "critic, after writer" in shown
    assert "joins" not in shown


def test_a_join_outside_of_a_session_is_no_step() -> None:
    """As any other step."""
    assert begin_step("node", "join", after=["s1"]) is None
