"""Forks by the name of a step, and a blame that names the step where a fault was planted."""

from __future__ import annotations

from pathlib import Path

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.run.fork_point import number_of
from tracefork_testkit.conformance.subject import QUESTION, Subject, in_many_loops
from tracefork_testkit.conversation import ModelRequest, ToolCall
from tracefork_testkit.provider import ProviderServer
from tracefork_testkit.script import Reply

_FEW = Settings(grades=1, least=2, samples=50, batch=2)
_BUDGET = "16 calls"
"""Enough to find the planted step, and too few for the proof, which takes three times as many."""


class Forks(Subject):
    """What a user does with the steps of an adapter."""

    def test_the_name_of_a_step_is_a_fork_point(
        self, provider: ProviderServer, tmp_path: Path
    ) -> None:
        """The fork replays all that comes before the step, and runs the rest live."""
        path = tmp_path / "run.tape"
        with tracefork.record(path):
            self._answer(provider.url, QUESTION, "sync")
        with tracefork.Tape.open(path) as tape:
            steps = [(exchange.n, exchange.steps[-1]) for exchange in tape.exchanges]
            call, size = self._tool_call(tape), len(tape.exchanges)
            places = {f"{step.kind}:{step.name}": n for n, step in reversed(steps)}
            places |= self.selectors
            assert {place: number_of(tape, place) for place in places} == places
        for n in (0, call):
            place = next(place for place in reversed(places) if places[place] == n)
            with tracefork.fork(path, place, writes="allow") as forked:
                self._answer(provider.url, QUESTION, "sync")
            assert (forked.replayed, forked.live) == (n, size - n), f"at={place!r}"
        assert self.lookups == 3

    @in_many_loops
    def test_blame_by_agent_names_the_planted_step(self, tmp_path: Path) -> None:
        """No fork is lost: each ends with an outcome, in an event loop of its own.

        A first agent greets. The model of a second one calls the tool, for once, and then gives the
        wrong answer. Only the second is async: some frameworks pool clients that allow one event
        loop in each run.
        """
        path, model = tmp_path / "run.tape", _Planted()
        with ProviderServer(model) as provider:

            def run() -> str:
                self._answer(provider.url, _GREETING, "sync")
                return self._answer(provider.url, _ASKING, "async")

            with tracefork.record(path):
                run()
            report = tracefork.blame(
                path,
                run,
                lambda answer: _WRONG not in str(answer),
                by=self.agent_kind,
                settings=_FEW,
                budget=_BUDGET,
                writes="allow",
            )
        assert [fork.undefined for fork in report.draws if fork.undefined] == []
        planted = 1
        assert report.result.decisive is not None
        assert report.result.decisive.unit == planted
        assert planted in report.parts[0].part.units
        assert len(report.parts) == 2, "each agent must have a step of its own"


_GREETING, _ASKING, _WRONG = "Say hello.", "Where is it?", "It is lost."


class _Planted:
    """A model that makes one mistake, when it is asked for the first time."""

    def __init__(self) -> None:
        self._was_asked = False

    def __call__(self, request: ModelRequest) -> Reply:
        if _ASKING not in request.last_user_text:
            return Reply("Hello.")
        if request.tool_results:
            return Reply(_WRONG)
        was_asked, self._was_asked = self._was_asked, True
        return (
            Reply("It is on its way.") if was_asked else Reply(tool_calls=[ToolCall("lookup", {})])
        )
