"""Blame names the agent at fault in a delegation, the example's."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desks import IS_NIGHT, blamed, check_named, imported

from tracefork_testkit import ProviderServer

FAULTS = ("tracker", "clerk", "desk") if IS_NIGHT else ("clerk",)
"""One fault in CI with few trials, and one after another at night with a proof."""


@pytest.mark.many_processes
@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_agent_at_fault(
    fault: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two inner agents run in tools of the outer one, and no fork is lost."""
    with (
        imported("parcel_desk", monkeypatch) as example,
        ProviderServer(example("provider").Model(fault)) as server,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        report = blamed(example("desk"), tape, by="agent", calls="24 calls")
    check_named(report, fault)
