"""Ignore what AutoGen's extensions do at each run, with tracefork and without it."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore deprecated words in their own code; let Mem0 send no telemetry when it is imported."""
    os.environ["MEM0_TELEMETRY"] = "False"
    config.addinivalue_line("filterwarnings", "ignore:Support for class-based `config`")
