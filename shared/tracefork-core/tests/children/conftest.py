"""A provider whose answers differ each time, and jobs that other processes can import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

collect_ignore = [] if find_spec("uvloop") else ["test_uvloop.py"]
"""A test with this mark runs in an environment of its own: see tox.ini."""
AGENTS = Path(__file__).parent / "agents"
SCRIPT = str(AGENTS / "asking.py")


def jobs() -> Any:
    """Return the jobs as a module that other processes can import by name."""
    return import_module("asking")


@pytest.fixture
def moody() -> Iterator[ProviderServer]:
    """Serve answers that differ each time, so that equal requests differ only by their lane."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let child processes import the jobs."""
    monkeypatch.syspath_prepend(AGENTS)
    yield
    sys.modules.pop("asking", None)


class Proven(Protocol):
    """Record an agent, replay it without a provider, and return the lanes of its exchanges."""

    def __call__(self, agent: Callable[[str], Any]) -> list[str]: ...


@pytest.fixture
def proven(tape: Path) -> Proven:
    """Return a function that records an agent and replays it without the provider."""

    def proven(agent: Callable[[str], Any]) -> list[str]:
        with ProviderServer(nondeterministic=True) as server:
            url = server.url
            with record(tape) as run:
                recorded = agent(url)
            asked = len(server.requests)
        with replay(tape, strict=True) as again:
            replayed = agent(url)
        assert replayed == recorded
        assert run.receipt is not None
        assert again.digest == run.digest
        assert again.exchanges == run.receipt.exchanges == asked
        assert run.receipt.strays == []
        assert run.receipt.crossed == run.receipt.connections > 0
        with Tape.open(tape) as written:
            return [exchange.lane for exchange in written.exchanges]

    return proven
