"""Blame names the agent at fault in a fan-out with a join, the example's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings
from tracefork_testkit import ProviderServer

EXAMPLE = Path(__file__).parents[3] / "examples" / "loan_desk"
IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FAULTS = ("income", "debts", "advisor") if IS_NIGHT else ("debts",)
"""One fault in CI with few trials, and one after another at night with a proof."""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the modules of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield import_module
    for name in ("desk", "provider"):
        sys.modules.pop(name, None)


@pytest.mark.many_processes
@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_agent_at_fault(
    example: Any, fault: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents ask at once, and the third one is only told what they said."""
    with ProviderServer(example("provider").Model(fault)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        desk = example("desk")
        with tracefork.record(tape):
            assert not desk.is_right(desk.run())
        with tracefork.replay(tape) as replayed:
            assert not desk.is_right(desk.run())
        assert replayed.digest == replayed.tape.digest
        report = tracefork.blame(
            tape,
            desk.run,
            desk.is_right,
            by="agent",
            settings=None if IS_NIGHT else Settings(grades=1, least=2, samples=50, batch=2),
            budget="400 calls" if IS_NIGHT else "24 calls",
        )
    assert [fork.undefined for fork in report.draws if fork.undefined] == []
    assert report.parts[0].part.step[-1] == fault
    assert report.parts[0].is_named or not IS_NIGHT
