"""A run of the agent replays, runs its tool once, and is not changed by the adapter."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import found_adapters
from tracefork_testkit.conformance.subject import (
    API_KEY,
    QUESTION,
    Subject,
    in_each_mode,
    in_many_loops,
)
from tracefork_testkit.provider import ProviderServer


class Recording(Subject):
    """What each adapter is there for."""

    @in_each_mode
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
            models = [one for one in replayed.tape.exchanges if not self._is_tool(one)]
        assert again == answer
        assert len(models) == asked
        assert replayed.digest == replayed.tape.digest

    @in_each_mode
    def test_a_tool_runs_once(self, provider: ProviderServer, tmp_path: Path, mode: str) -> None:
        """A replay and a fork behind its call answer it from the tape; a second recording runs it.

        The fork sends another question to the model, so what comes after it is live.
        """
        path = tmp_path / "run.tape"
        with tracefork.record(path):
            self._answer(provider.url, QUESTION, mode)
        assert self.lookups == 1
        with tracefork.replay(path) as replayed:
            self._answer(provider.url, QUESTION, mode)
            last = len(replayed.tape.exchanges) - 1
        assert self.lookups == 1
        with tracefork.fork(path, last, tracefork.Edit(prompt="Say no.")) as forked:
            self._answer(provider.url, QUESTION, mode)
        assert (forked.replayed, forked.live) == (last, 1)
        assert self.lookups == 1
        with tracefork.record(path, overwrite=True):
            self._answer(provider.url, QUESTION, mode)
        assert self.lookups == 2

    @in_many_loops
    @pytest.mark.parametrize("mode", ["sync", "async", "async stream"])
    def test_one_agent_serves_a_session_after_a_session(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """Each runs an event loop of its own, and the framework may pool its clients.

        A fork is such a session, and a blame opens one after another.
        """
        paths = [tmp_path / "a.tape", tmp_path / "b.tape"]
        agent, answers = self._agent(provider.url), []
        for path in paths:
            with tracefork.record(path):
                answers.append(self._ran(agent, QUESTION, mode))
        agent = self._agent(provider.url)
        provider.stop()
        for path, answer in zip(paths, answers, strict=True):
            with tracefork.replay(path, strict=True) as replayed:
                assert self._ran(agent, QUESTION, mode) == answer
            assert replayed.digest == replayed.tape.digest
        sizes = []
        for path in paths:
            with tracefork.Tape.open(path) as tape:
                sizes.append(len(tape.exchanges))
        assert sizes[0] == sizes[1], "a request failed and was sent again"

    def test_a_live_run_differs(self, provider: ProviderServer) -> None:
        """The negative control of replay: this provider never gives the same answer twice."""
        first = self._answer(provider.url, QUESTION, "sync")
        assert self._answer(provider.url, QUESTION, "sync") != first

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
