"""The pytest fixtures `provider` and `no_network`, and the end of tests that hang."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tracefork_testkit.offline import ClosedNetwork, closed_network
from tracefork_testkit.provider import ProviderServer

_STATUS = pytest.StashKey[int]()


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """Serve the default script for the test's duration."""
    with ProviderServer() as server:
        yield server


@pytest.fixture
def no_network() -> Iterator[ClosedNetwork]:
    """Close the network for the test's duration, loopback too; `.attempts` lists refusals."""
    with closed_network() as network:
        yield network


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember the status, for a process that cannot end by itself."""
    session.config.stash[_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the process if a test of an adapter hangs: Python would wait for its threads."""
    within = sys.modules.get("tracefork_testkit.conformance.within")
    if within is not None and any(thread.is_alive() for thread in within.hung):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash.get(_STATUS, 1))
