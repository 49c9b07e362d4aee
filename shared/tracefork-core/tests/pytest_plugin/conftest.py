"""An inner suite for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.suites import Suite, quiet

from tracefork_testkit import ProviderServer


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)


@pytest.fixture
def suite(tmp_path: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """An empty suite, and a server that answers."""
    monkeypatch.setenv("PROVIDER", provider.url)
    return Suite(tmp_path, provider)
