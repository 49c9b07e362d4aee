"""Blame names the agent at fault in a graph and in a swarm, those of the example."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desks import IS_NIGHT, blamed, imported

from tracefork_testkit import ProviderServer

FAULTS = [("desk", "east"), ("service", "triage")]
"""One fault of each desk in CI with few trials, and all at night with a proof."""
if IS_NIGHT:
    FAULTS += [("desk", "editor"), ("service", "billing"), ("service", "closing")]

BUDGETS = {"desk": "60 calls", "service": "32 calls"}
"""Enough to find the place of the fault: a run of the graph asks nine times."""


@pytest.mark.many_processes
@pytest.mark.parametrize(("program", "fault"), FAULTS)
def test_blame_names_the_agent_at_fault(
    program: str, fault: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the graph, four analysts ask at once. In the swarm, the next agent may be a wrong one."""
    with (
        imported("sales_desk", monkeypatch) as example,
        ProviderServer(example("provider").Model(fault)) as server,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        report = blamed(example(program), tape, by="agent", calls=BUDGETS[program], night=None)
    undefined = [fork.probe for fork in report.draws if fork.undefined]
    # Repairs ask no model, and a repaired hand-off leads to an agent that was never asked.
    repairs = {"repair"} if fault == "triage" else set()
    assert {probe.purpose for probe in undefined} <= repairs
    assert all(probe.given for probe in undefined)
    assert report.parts[0].part.step[-1] == fault
    decisive = report.result.decisive
    assert decisive is not None
    assert decisive.unit in report.parts[0].part.units
    assert decisive.interval[0] > 0 or not IS_NIGHT
