"""Blame names the agent at fault in a graph and in a swarm, those of the example."""

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

EXAMPLE = Path(__file__).parents[3] / "examples" / "sales_desk"
IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FAULTS = [("desk", "east"), ("service", "triage")]
"""One fault of each desk in CI with few trials, and all at night with a proof."""
if IS_NIGHT:
    FAULTS += [("desk", "editor"), ("service", "billing"), ("service", "closing")]

BUDGETS = {"desk": "60 calls", "service": "32 calls"}
"""Enough to find the place of the fault: a run of the graph asks nine times."""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the modules of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield import_module
    for name in ("desk", "service", "provider"):
        sys.modules.pop(name, None)


@pytest.mark.many_processes
@pytest.mark.parametrize(("program", "fault"), FAULTS)
def test_blame_names_the_agent_at_fault(
    example: Any, program: str, fault: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the graph, four analysts ask at once. In the swarm, the next agent may be a wrong one."""
    with ProviderServer(example("provider").Model(fault)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        desk = example(program)
        with tracefork.record(tape):
            assert not desk.is_right(desk.run())
        with tracefork.replay(tape, strict=True) as replayed:
            assert not desk.is_right(desk.run())
        assert replayed.digest == replayed.tape.digest
        report = tracefork.blame(
            tape,
            desk.run,
            desk.is_right,
            by="agent",
            settings=None if IS_NIGHT else Settings(grades=1, least=2, samples=50, batch=2),
            budget=None if IS_NIGHT else BUDGETS[program],
        )
    # Behind a wrong hand-off, a fork may need more calls than the recorded agents made.
    is_exempt = IS_NIGHT and fault == "triage"
    assert [fork.undefined for fork in report.draws if fork.undefined] == [] or is_exempt
    assert report.parts[0].part.step[-1] == fault
    decisive = report.result.decisive
    assert decisive is not None
    assert decisive.unit in report.parts[0].part.units
    assert decisive.interval[0] > 0 or not IS_NIGHT
