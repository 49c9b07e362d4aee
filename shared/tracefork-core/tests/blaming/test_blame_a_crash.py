"""A run that ended in an exception is blamed for it: to end in it again is to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_core.blaming.blame import blame

from . import drawing
from .drawn import QUICK, ROOT, Drawing


class DeniedError(Exception):
    """The agent was told no."""


def crashing() -> str:
    said = drawing.agent()
    if not drawing.good(said):
        raise DeniedError(said)
    return said


def test_the_step_that_a_run_crashed_for_is_named(tmp_path: Path, desk: Drawing) -> None:
    """An oracle that knows no exceptions grades the ends; the recorded crash counts as failed."""
    path = tmp_path / "run.tape"
    with pytest.raises(DeniedError), record(path):
        crashing()
    result = blame(path, crashing, drawing.good, settings=QUICK, folder=tmp_path / "same").result
    assert (result.verdict.units, result.undefined.forks) == ((ROOT,), 0)

    def otherwise() -> str:
        try:
            return crashing()
        except DeniedError as error:
            raise LookupError from error

    result = blame(path, otherwise, drawing.good, settings=QUICK, folder=tmp_path / "other").result
    assert result.verdict.units == ()
    assert result.undefined.forks > 0


def test_an_agent_that_cannot_begin_says_why(tmp_path: Path, desk: Drawing) -> None:
    """And not that it asked for nothing: that is no wonder."""
    path = tmp_path / "run.tape"
    with record(path):
        drawing.agent()

    def unset() -> str:
        raise KeyError("DESK_URL")

    reasons = blame(path, unset, drawing.good, settings=QUICK, folder=tmp_path / "b").result
    assert set(reasons.undefined.reasons) == {"the agent ended with KeyError: 'DESK_URL'"}
