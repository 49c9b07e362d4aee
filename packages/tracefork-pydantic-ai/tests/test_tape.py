"""`tape` records a test the first time, and replays it from then on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

import tracefork_core as tracefork
from tracefork_pydantic_ai import tape as use

Call = Callable[..., Any]
TAPES = Path(__file__).parent / "tapes"


@pytest.fixture(autouse=True)
def _own_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """These tests run on build servers too."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("TRACEFORK_TAPE_MODE", raising=False)
    yield
    shutil.rmtree(TAPES, ignore_errors=True)


def test_a_test_is_recorded_once_and_replayed_without_requests(
    agent: Call, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape is beside the test, and a replay passes where pydantic-ai forbids requests."""
    helper = agent("helper")
    with use("a_test"):
        first = helper.run_sync("Go on.").output
    assert (TAPES / "a_test.tape").exists()
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    server.stop()
    with use("a_test"):
        assert helper.run_sync("Go on.").output == first
    assert not models.ALLOW_MODEL_REQUESTS
    with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"), use("another"):
        helper.run_sync("Go on.")
    assert not (TAPES / "another.tape").exists()


async def test_an_async_test_is_the_same(agent: Call, server: Any) -> None:
    """Another question diverges, and records nothing."""
    helper = agent("helper")
    async with use("deep/down"):
        first = (await helper.run("Go on.")).output
    server.stop()
    async with use("deep/down", mode="none"):
        assert (await helper.run("Go on.")).output == first
    with pytest.raises(tracefork.DivergenceError):
        async with use("deep/down"):
            await helper.run("Stop.")


@pytest.mark.parametrize("name", ["", "/etc/x"])
def test_a_tape_needs_a_name(name: str) -> None:
    """The error has an example."""
    with pytest.raises(tracefork.UsageError, match="needs a name, such as refund"):
        use(name)
