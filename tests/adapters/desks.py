"""Blame an example whose scripted model plants a fault: few trials in CI, a proof at night."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FEW = Settings(grades=1, least=2, samples=50, batch=2)


@contextmanager
def imported(example: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Yield what imports a module of an example, and forget its modules after that."""
    folder = EXAMPLES / example
    monkeypatch.syspath_prepend(folder)
    yield import_module
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)


def blamed(
    program: Any, tape: Path, *, by: str, calls: str, night: str | None = "400 calls"
) -> Any:
    """Record a run that goes wrong, replay it, and return what blame reports.

    Args:
        program: a module with `run`, and with `is_right`, which grades what that returns.
        tape: where the run is recorded.
        by: what is blamed: "agent" or "node".
        calls: the budget in CI, enough to find the place of the fault.
        night: the budget of a proof.
    """
    with tracefork.record(tape):
        assert not program.is_right(program.run())
    with tracefork.replay(tape, strict=True) as replayed:
        assert not program.is_right(program.run())
    assert replayed.digest == replayed.tape.digest
    return tracefork.blame(
        tape,
        program.run,
        program.is_right,
        by=by,
        settings=None if IS_NIGHT else FEW,
        budget=night if IS_NIGHT else calls,
    )


def check_named(report: Any, fault: str) -> None:
    """Check that blame puts the part with the fault first, and at night that it is proven."""
    assert [fork.undefined for fork in report.draws if fork.undefined] == []
    assert report.parts[0].part.step[-1] == fault
    assert report.parts[0].is_named or not IS_NIGHT
