"""A request that differs from the recorded one is an error at once, and never a hang.

Frameworks catch errors of models and tools: they retry, or tell the model that the tool failed.
Some run tools in threads and wait for an answer. None of that may hide a divergence or wait for
what never comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.tape.rewrite import Change, Document, bodies, rewrite
from tracefork_testkit.conformance.subject import QUESTION, Subject, in_each_mode
from tracefork_testkit.conformance.within import within
from tracefork_testkit.provider import ProviderServer


class Misses(Subject):
    """Divergences at a model call and at a tool call."""

    @in_each_mode
    def test_one_changed_byte_diverges(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """A changed question diverges at the first exchange, whatever errors the agent catches."""
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, mode)
        asked = len(provider.requests)
        assert self._divergence(tmp_path / "run.tape", provider.url, QUESTION + "!", mode) == 0
        assert len(provider.requests) == asked, "a request was sent live"

    @in_each_mode
    def test_a_changed_argument_of_a_tool_diverges(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """The tape says that the tool was called with another argument; it does not run again."""
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, mode)
        asked, changed = len(provider.requests), tmp_path / "changed.tape"
        with tracefork.Tape.open(tmp_path / "run.tape") as tape:
            call = self._tool_call(tape)
            rewrite(tape, changed, _OneMoreArgument(self._is_tool))
        assert self._divergence(changed, provider.url, QUESTION, mode) == call
        assert self.lookups == 1, "the tool ran again"
        assert len(provider.requests) == asked, "a request was sent live"

    def _divergence(self, path: Path, url: str, question: str, mode: str) -> int | None:
        """Replay a run that differs, and return the number of the exchange that it differs from."""

        def replay() -> None:
            with tracefork.replay(path):
                self._answer(url, question, mode)

        with pytest.raises(tracefork.DivergenceError) as caught:
            within(self.seconds, replay)
        return caught.value.divergence.n


class _OneMoreArgument(Change):
    def __init__(self, is_tool: Callable[[Any], bool]) -> None:
        self._is_tool = is_tool

    def exchange(
        self, exchange: Any, payload: Document, aside: Document
    ) -> tuple[bytes, list[bytes]]:
        request, response = bodies(exchange)
        if self._is_tool(exchange):
            request = json.dumps({**json.loads(request), "another": 1}).encode()
        return request, response
