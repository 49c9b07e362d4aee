"""A recorded exception counts as a failure when a fork ends with it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_core.blaming.blame import blame
from tracefork_core.order import turnstile

from . import drawing
from .drawn import QUICK, ROOT, Drawing


class DeniedError(Exception):
    """The model denied the refund."""


def crashing() -> str:
    said = drawing.agent()
    if not drawing.good(said):
        raise DeniedError(said)
    return said


def test_blame_names_the_step_that_made_a_run_crash(tmp_path: Path, desk: Drawing) -> None:
    """The recorded exception counts as failed; any other exception has no outcome."""
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


def test_forks_of_an_agent_that_cannot_start_report_its_error(
    tmp_path: Path, desk: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not report the missing calls, which only follow from it."""
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.1)  # Each fork waits for other threads.
    path = tmp_path / "run.tape"
    with record(path):
        drawing.agent()

    def unset() -> str:
        raise KeyError("DESK_URL")

    reasons = blame(path, unset, drawing.good, settings=QUICK, folder=tmp_path / "b").result
    assert set(reasons.undefined.reasons) == {"the agent ended with KeyError: 'DESK_URL'"}
