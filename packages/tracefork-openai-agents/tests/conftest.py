"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import os

import pytest

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"  # No test posts to the host of OpenAI.


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the SDK does at each run, with tracefork and without it.

    `Runner.run_sync` uses an event loop again after it has shut down its generators, and clients
    are left to the garbage collector.
    """
    for ignored in (
        "ignore:asynchronous generator:ResourceWarning",
        "ignore:unclosed:ResourceWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)
