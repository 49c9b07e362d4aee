"""Blame names the node at fault in the graph of the example, by forks of one recording."""

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

from ..conftest import KEYS

EXAMPLE = Path(__file__).parents[4] / "examples" / "order_graph"
IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FAULTS = ("intake", "price", "stock", "answer") if IS_NIGHT else ("price",)
"""One fault in CI with few trials, and one after another at night with a proof."""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the modules of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield import_module
    for name in ("graph", "provider"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_node_at_fault(
    example: Any, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All later nodes repeat the mistake; only another answer of this one makes the run right."""
    with ProviderServer(example("provider").Model(fault)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name, value in KEYS.items():
            monkeypatch.setenv(name.upper(), value)
        graph = example("graph")
        with tracefork.record(tmp_path / "run.tape"):
            assert not graph.is_right(graph.run())
        report = tracefork.blame(
            tmp_path / "run.tape",
            graph.run,
            graph.is_right,
            by="node",
            settings=None if IS_NIGHT else Settings(grades=1, least=2, samples=50, batch=2),
            budget="400 calls" if IS_NIGHT else "60 calls",
        )
    assert [fork.undefined for fork in report.draws if fork.undefined] == []
    assert report.parts[0].part.step[-1] == fault
    assert report.parts[0].is_named or not IS_NIGHT
