"""Fixtures of the adapters' tests: a scripted provider, a tape, a run recorded and replayed.

Each conftest.py imports them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

__all__ = ["paths", "server", "tape", "twice"]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose answers differ each time, so that none is right by accident."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


@pytest.fixture
def twice(server: ProviderServer, tape: Path) -> Callable[..., tuple[Any, Any]]:
    """Record a run, stop the provider, and replay the run; return both results."""

    def run(action: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
        with tracefork.record(tape, **options):
            recorded = action()
        server.stop()
        with tracefork.replay(tape, strict=True, **options) as replayed:
            again = action()
        assert replayed.digest == replayed.tape.digest
        return recorded, again

    return run


@pytest.fixture
def paths(tape: Path) -> Callable[[], list[str]]:
    """Read the step path of each exchange on the tape, as kinds and names."""

    def read() -> list[str]:
        with tracefork.Tape.open(tape) as opened:
            steps = {step.id: step for step in opened.steps}

            def path(step: str | None) -> Iterator[str]:
                if step is not None:
                    yield from path(steps[step].parent)
                    yield f"{steps[step].kind}:{steps[step].name}"

            return [" ▸ ".join(path(exchange.step)) for exchange in opened.exchanges]

    return read
