"""Ignore what AutoGen's extensions do at each run, with tracefork and without it."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Ignore deprecated words in their own code."""
    config.addinivalue_line("filterwarnings", "ignore:Support for class-based `config`")
