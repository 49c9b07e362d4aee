"""Blame runs whose models are asked over a websocket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall


class _Misled:
    """Looks up the wrong thing the first time, and every seventh time."""

    def __init__(self) -> None:
        self._looked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        if request.tool_results:
            return Reply(f"It is {request.tool_results[-1].text}.")
        self._looked += 1
        name = "wrong" if self._looked % 7 == 1 else "right"
        return Reply(tool_calls=[ToolCall("echo", {"text": name})])


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that sometimes misleads its agent."""
    with ProviderServer(_Misled()) as server:
        yield server


def test_blame_names_the_request_that_misled_a_run(ask: Any, sockets: Any, tape: Path) -> None:
    """Each fork has a connection of its own, on an event loop of its own."""
    with tracefork.record(tape):
        assert ask("look") == "It is wrong."
    report = tracefork.blame(
        tape,
        lambda: ask("look"),
        lambda answer: "right" in str(answer),
        budget="40 calls",
        writes="allow",
    )
    assert report.result.decisive is not None
    assert report.result.decisive.unit == 0
    assert report.result.undefined.forks == 0
