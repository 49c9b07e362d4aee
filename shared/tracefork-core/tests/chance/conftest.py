"""Shared by the tests of chance: an agent that draws all kinds of random values."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

AGENT = Path(__file__).with_name("an_agent.py")


@pytest.fixture
def agent() -> Iterator[ModuleType]:
    """Import the agent under the name that it has in a process of its own."""
    spec = importlib.util.spec_from_file_location("an_agent", AGENT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["an_agent"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["an_agent"]
