"""The pytest fixtures: `provider` and `no_network`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracefork_testkit.offline import ClosedNetwork, closed_network
from tracefork_testkit.provider import ProviderServer


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
