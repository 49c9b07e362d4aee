"""A provider that never gives the same answer twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracefork_testkit import ProviderServer

from .agent import Moody


@pytest.fixture
def moody() -> Moody:
    return Moody()


@pytest.fixture
def url(moody: Moody) -> Iterator[str]:
    with ProviderServer(moody) as server:
        yield server.url
