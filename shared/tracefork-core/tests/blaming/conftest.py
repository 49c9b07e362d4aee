"""Fixtures for blame: a failed run with its provider, and a model that grades."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_testkit import ProviderServer

from . import drawing
from .drawn import Drawing
from .grading import Bench


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drawing]:
    """Serve the agent's model."""
    with Drawing() as server:
        monkeypatch.setenv("PROVIDER", server.url)
        yield server


@pytest.fixture
def tape(tmp_path: Path, desk: Drawing) -> Path:
    """Record a run that fails; its provider keeps running."""
    with record(tmp_path / "run.tape"):
        drawing.agent()
    return tmp_path / "run.tape"


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def endpoint(bench: Bench) -> Iterator[str]:
    """Serve the judge's model, and return its base URL."""
    with ProviderServer(bench) as server:
        yield f"{server.url}/v1"
