"""Blame names the node at fault in the graph of the example, by forks of one recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desks import IS_NIGHT, blamed, check_named, imported

from tracefork_testkit import ProviderServer

from ..conftest import KEYS

FAULTS = ("intake", "price", "stock", "answer") if IS_NIGHT else ("price",)
"""One fault in CI with few trials, and one after another at night with a proof."""


@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_node_at_fault(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All later nodes repeat the mistake; only another answer of this one makes the run right."""
    with (
        imported("order_graph", monkeypatch) as example,
        ProviderServer(example("provider").Model(fault)) as server,
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name, value in KEYS.items():
            monkeypatch.setenv(name.upper(), value)
        report = blamed(example("graph"), tmp_path / "run.tape", by="node", calls="60 calls")
    check_named(report, fault)
