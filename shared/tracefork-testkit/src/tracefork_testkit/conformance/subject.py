"""What the tests of an adapter give to the suite, and what all tests of the suite use."""

from __future__ import annotations

import gc
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest

from tracefork_core import Tape
from tracefork_testkit.provider import ProviderServer

API_KEY = "sk-conformance-0123456789"
QUESTION = "@call lookup {}\n@then\n@say It is on its way."
MODES = ("sync", "async", "stream", "async stream")

in_many_loops = pytest.mark.usefixtures("_unclosed")
in_each_mode = pytest.mark.parametrize("mode", MODES)


class Subject(ABC):
    """The adapter and the agent under test."""

    adapter: ClassVar[str]
    model_kind: ClassVar[str] = "model"
    tool_kind: ClassVar[str] = "tool"
    agent_kind: ClassVar[str] = "agent"
    selectors: ClassVar[Mapping[str, int]] = {}
    tool_seam: ClassVar[str] = "tool"
    seconds: ClassVar[float] = 5.0

    @abstractmethod
    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        """Build a new agent with the tool `lookup` and its model at `url`, not attached."""

    @abstractmethod
    def attach(self, agent: Any) -> Any:
        """Attach the adapter to the agent and return what `attach` returns."""

    @abstractmethod
    def run(self, agent: Any, question: str, mode: str) -> str:
        """Run the agent in one of `MODES` and return its last answer."""

    @pytest.fixture(autouse=True)
    def _nothing_looked_up(self) -> None:
        self.lookups = 0

    @pytest.fixture
    def provider(self) -> Any:
        """Serve the default script, with new ids and texts in every run."""
        with ProviderServer(nondeterministic=True) as server:
            yield server

    @pytest.fixture
    def _unclosed(self) -> Iterator[None]:
        """Collect the connections that a test leaves open, because their loop is gone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
            gc.collect()

    def _agent(self, url: str) -> Any:
        return self.attach(self.make_agent(url, self._lookup()))

    def _answer(self, url: str, question: str, mode: str) -> str:
        return self._ran(self._agent(url), question, mode)

    def _ran(self, agent: Any, question: str, mode: str) -> str:
        answer = self.run(agent, question, mode)
        assert not inspect.isawaitable(answer), (
            "`run` must return the answer itself, also in async modes"
        )
        return answer

    def _lookup(self) -> Callable[[], str]:
        def lookup() -> str:
            """Look something up."""
            self.lookups += 1
            return "found"

        return lookup

    def _is_tool(self, exchange: Any) -> bool:
        return bool(exchange.aside.seam == self.tool_seam)

    def _tool_call(self, tape: Tape) -> int:
        """Return the number of the exchange that calls the tool."""
        calls = [exchange.n for exchange in tape.exchanges if self._is_tool(exchange)]
        assert len(calls) == 1, f"the run must record one call of its tool, not {len(calls)}"
        return calls[0]
