"""What the guide shows works, on the crew of the example."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ProviderServer

from .guide import ROOT, follow


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crew is recorded as it is, shown, replayed and forked at the task; each in a process."""
    printed = follow_in(tmp_path, monkeypatch, blame=False)
    assert "newsroom ▸ analyse ▸ Analyst" in printed[1]
    assert "29 of 29 exchanges bit-exact" in printed[2]


def follow_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *, blame: bool) -> list[str]:
    """Follow the guide in a folder, with the example's model."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRACEFORK_HOME", str(folder / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("COLUMNS", "160")
    with ProviderServer(_model()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        return follow(blame=blame)


def _model() -> Any:
    where = ROOT / "examples" / "newsroom" / "provider.py"
    spec = importlib.util.spec_from_file_location("provider", where)
    assert spec is not None
    assert spec.loader is not None
    provider = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(provider)
    return provider.Model("write")
