"""A thread for the tests of what belongs to a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .asking import Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Yield a thread that is older than any session of the test."""
    made = Worker()
    yield made
    made.stop()
