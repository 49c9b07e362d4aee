"""Each exchange has a step, and its name is the same in every run and every process."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_testkit.conformance import process
from tracefork_testkit.conformance.subject import QUESTION, Subject, in_each_mode
from tracefork_testkit.provider import ProviderServer


class Steps(Subject):
    """Steps with stable names let runs be compared, forked by name and blamed."""

    @in_each_mode
    def test_every_exchange_has_a_step(
        self, provider: ProviderServer, tmp_path: Path, mode: str
    ) -> None:
        """Each model call belongs to the step of its model, and each tool call to a step.

        All of them have names, and so do the steps around them.
        """
        with tracefork.record(tmp_path / "run.tape"):
            self._answer(provider.url, QUESTION, mode)
        with tracefork.Tape.open(tmp_path / "run.tape") as tape:
            kinds = {step.id: step.kind for step in tape.steps}
            asking = [(self._is_tool(one), kinds.get(one.step or "")) for one in tape.exchanges]
            unnamed = [step.kind for step in tape.steps if not step.name.strip()]
        models = [kind for is_tool, kind in asking if not is_tool]
        assert models == [self.model_kind] * len(models) != []
        assert [kind for is_tool, kind in asking if is_tool] == [self.tool_kind]
        assert unnamed == [], "steps without a name"

    def test_step_names_are_alike_in_two_runs(
        self, provider: ProviderServer, tmp_path: Path
    ) -> None:
        """Stable step names let two runs be compared."""
        names = []
        for name in ("a.tape", "b.tape"):
            with tracefork.record(tmp_path / name):
                self._answer(provider.url, QUESTION, "sync")
            names.append(_names(tmp_path / name))
        assert names[0] == names[1] != []

    def test_another_process_agrees_on_steps(
        self, provider: ProviderServer, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        """It replays the run, names its own steps alike, and `tracefork fork` finds them by name.

        It has another PYTHONHASHSEED, so sets and hashes of strings have another order there.
        """
        if process.task is not None:
            self._do(process.task)
            return
        here, there = tmp_path / "here.tape", tmp_path / "there.tape"
        with tracefork.record(here):
            answer = self._answer(provider.url, QUESTION, "sync")
        process.run(request, {"url": provider.url, "folder": str(tmp_path), "answer": answer})
        assert _names(there) == _names(here) != []

    def _do(self, task: process.Task) -> None:
        folder = Path(task["folder"])
        with tracefork.replay(folder / "here.tape", strict=True) as replayed:
            assert self._answer(task["url"], QUESTION, "sync") == task["answer"]
        assert replayed.digest == replayed.tape.digest
        with tracefork.record(folder / "there.tape"):
            self._answer(task["url"], QUESTION, "sync")
        with tracefork.Tape.open(folder / "there.tape") as tape:
            n = self._tool_call(tape)
            tool = tape.exchanges[n].steps[-1]
        # Last, because the command also does what Python does at the end of a process.
        place, n = [(f"{tool.kind}:{tool.name}", n), *self.selectors.items()][-1]
        run = partial(self._answer, task["url"], QUESTION, "sync")
        assert process.fork_by_command(folder / "there.tape", place, run) == n, f"--at {place}"


def _names(path: Path) -> list[tuple[str, str]]:
    """Return the kind and the name of each step, in the order in which they began."""
    with tracefork.Tape.open(path) as tape:
        return [(step.kind, step.name) for step in tape.steps]
