"""The tests that every adapter inherits.

    class TestConformance(AdapterConformance):
        adapter = "langgraph"
        def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent: ...

An *agent* is an object of the framework under test that was built but has not run yet. Each test
runs it through `run`, against a scripted provider over a real socket. The agent's model must use
`API_KEY` as its key, and must receive the question unchanged. Its one tool is `lookup`: give it to
the framework in the way that lets the adapter record it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import found_adapters
from tracefork_testkit.provider import ProviderServer

API_KEY = "sk-conformance-0123456789"
QUESTION = "@call lookup {}\n@then\n@say It is on its way."
MODES = ("sync", "async", "stream", "async stream")


class AdapterConformance(ABC):
    """Inherit, implement the three abstract methods, and let pytest collect the tests.

    Attributes:
        adapter: the adapter's name in its entry point.
        model_kind: the kind of the steps of model calls.
        tool_kind: the kind of the steps of tool calls.
    """

    adapter: ClassVar[str]
    model_kind: ClassVar[str] = "model"
    tool_kind: ClassVar[str] = "tool"

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

    @pytest.mark.parametrize("mode", MODES)
    def test_a_run_replays_with_the_provider_gone(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """The answer, the digest and the lanes are those of the tape, without a connection."""
        with tracefork.record(tmp_path / "run.tape"):
            answer = self._answer(provider.url, QUESTION, mode)
        asked = len(provider.requests)
        assert asked >= 2, "the agent must call its tool: at least two model calls"
        url = provider.url
        provider.stop()
        with tracefork.replay(tmp_path / "run.tape", strict=True) as replayed:
            again = self._answer(url, QUESTION, mode)
            models = [exchange for exchange in replayed.tape.exchanges if not _is_tool(exchange)]
        assert again == answer
        assert len(models) == asked
        assert replayed.digest == replayed.tape.digest

    def test_a_tool_runs_once(self, provider: ProviderServer, tmp_path: Path) -> None:
        """A replay and a fork behind its call answer it from the tape; a second recording runs it.

        The fork sends another question to the model, so what comes after it is live.
        """
        path = tmp_path / "run.tape"
        with tracefork.record(path):
            self._answer(provider.url, QUESTION, "sync")
        assert self.lookups == 1
        with tracefork.replay(path) as replayed:
            self._answer(provider.url, QUESTION, "sync")
            last = len(replayed.tape.exchanges) - 1
        assert self.lookups == 1
        with tracefork.fork(path, last, tracefork.Edit(prompt="Say no.")) as forked:
            self._answer(provider.url, QUESTION, "sync")
        assert (forked.replayed, forked.live) == (last, 1)
        assert self.lookups == 1
        with tracefork.record(path, overwrite=True):
            self._answer(provider.url, QUESTION, "sync")
        assert self.lookups == 2

    def test_a_live_run_differs(self, provider: ProviderServer) -> None:
        """The negative control of replay: this provider never gives the same answer twice."""
        first = self._answer(provider.url, QUESTION, "sync")
        assert self._answer(provider.url, QUESTION, "sync") != first

    @pytest.mark.parametrize("mode", MODES)
    def test_one_changed_byte_diverges(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """A changed question diverges at the first exchange, whatever errors the agent catches."""
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, mode)
        asked = len(provider.requests)
        with (
            pytest.raises(tracefork.DivergenceError) as caught,
            tracefork.replay(tmp_path / "run.tape"),
        ):
            self._answer(provider.url, QUESTION + "!", mode)
        assert caught.value.divergence.n == 0
        assert len(provider.requests) == asked, "a request was sent live"

    @pytest.mark.parametrize("mode", MODES)
    def test_every_exchange_has_a_step(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """Each model call belongs to the step of its model, and each tool call to a step."""
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, mode)
        with tracefork.Tape.open(tmp_path / "run.tape") as tape:
            kinds = {step.id: step.kind for step in tape.steps}
            asking = [(_is_tool(one), kinds.get(one.step or "")) for one in tape.exchanges]
        models = [kind for is_tool, kind in asking if not is_tool]
        assert models == [self.model_kind] * len(models) != []
        assert [kind for is_tool, kind in asking if is_tool] == [self.tool_kind]

    def test_step_names_are_alike_in_two_runs(
        self, provider: ProviderServer, tmp_path: Path
    ) -> None:
        """Stable step names let two runs be compared."""
        names = []
        for tape_path in (tmp_path / "a.tape", tmp_path / "b.tape"):
            with tracefork.record(tape_path):
                self._answer(provider.url, QUESTION, "sync")
            with tracefork.Tape.open(tape_path) as tape:
                names.append([(step.kind, step.name) for step in tape.steps])
        assert names[0] == names[1] != []

    def test_attaching_twice_is_attaching_once(
        self, provider: ProviderServer, tmp_path: Path
    ) -> None:
        """`attach` is idempotent: no step and no exchange is recorded twice."""
        counts = []
        for times in (1, 2):
            agent = self.make_agent(provider.url, self._lookup())
            for _ in range(times):
                agent = self.attach(agent)
            tape_path = tmp_path / f"{times}.tape"
            with tracefork.record(tape_path):
                self.run(agent, QUESTION, "sync")
            with tracefork.Tape.open(tape_path) as tape:
                counts.append((len(tape.exchanges), len(tape.steps)))
        assert counts[0] == counts[1]

    def test_outside_a_session_nothing_changes(self, provider: ProviderServer) -> None:
        """Without a session, an attached agent sends the same requests as a plain one."""
        self.run(self.make_agent(provider.url, self._lookup()), "@say hello", "sync")
        plain = provider.requests[-1]
        agent = self.attach(self.make_agent(provider.url, self._lookup()))
        self.run(agent, "@say hello", "sync")
        attached = provider.requests[-1]
        assert attached.body == plain.body
        assert [name for name, _ in attached.headers] == [name for name, _ in plain.headers]

    def test_the_key_never_reaches_the_tape(self, provider: ProviderServer, tmp_path: Path) -> None:
        """The API key that the provider received is in no file of the recording."""
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, "sync")
        sent = [value for _, value in provider.requests[-1].headers]
        assert any(API_KEY in value for value in sent), "the agent must use API_KEY"
        for file in tmp_path.iterdir():
            assert API_KEY.encode() not in file.read_bytes()

    def test_the_adapter_is_found(self) -> None:
        """`tracefork doctor` lists adapters by their entry points."""
        names = [point.name for point, _ in found_adapters()]
        assert self.adapter in names

    def _answer(self, url: str, question: str, mode: str) -> str:
        agent = self.attach(self.make_agent(url, self._lookup()))
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


def _is_tool(exchange: Any) -> bool:
    return bool(exchange.aside.seam == "tool")
