"""Blame names the agent at fault in a sequence of parallel agents and a loop, the example's."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desks import IS_NIGHT, blamed, check_named, imported

from tracefork_testkit import ProviderServer

FAULTS = ("hotels", "writer", "checker") if IS_NIGHT else ("writer",)
"""One fault in CI with few trials, and one after another at night with a proof."""


@pytest.mark.many_processes
@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_agent_at_fault(
    fault: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer and the checker have two turns each, and only one of those may be wrong."""
    with (
        imported("trip_review", monkeypatch) as example,
        ProviderServer(example("provider").Model(fault)) as server,
    ):
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        report = blamed(example("review"), tape, by="agent", calls="24 calls")
    check_named(report, fault)
