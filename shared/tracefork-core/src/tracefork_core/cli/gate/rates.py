"""`tracefork ci check --rerun N`: does an agent pass live as often as it should?

A replay proves that the code still asks what it asked. It says nothing of what the model answers
today. So the agent runs live, up to N times, and an oracle grades each run. After each run it is
asked whether the rate is known; if N runs do not tell, the verdict is "undecided".
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.blaming.engine.pass_rate import FAIL, PASS, missing_runs, verdict_on
from tracefork_core.blaming.oracles.oracles import Ended
from tracefork_core.cli.agent import child_python
from tracefork_core.cli.exits import DIFFERENT
from tracefork_core.cli.gate.manifest import Entry
from tracefork_core.cli.gate.verdict import Checked, Verdict

if TYPE_CHECKING:
    from tracefork_core.blaming.trials.trial import Oracle

_CONFIDENCE = 0.8
_TAPE = "run.tape"


@dataclass(frozen=True, slots=True)
class Rates:
    """What is demanded of live runs.

    Attributes:
        runs: the most live runs of one agent.
        rate: the share of runs that must pass.
        words: the oracle as it was typed.
        oracle: grades the outcome of a run.
        blame_budget: what a blame of a failed run may spend; empty for no blame.
    """

    runs: int
    rate: float
    words: str
    oracle: Oracle
    blame_budget: str = ""

    def judge(self, one: Checked, entry: Entry, folder: Path) -> Checked:
        """Run an agent live until its rate is known; a replay that did not pass is left alone."""
        if one.verdict != Verdict.PASS:
            return one
        here, passed, failed = entry.home(folder), 0, 0
        blamed, said = "", list[str]()
        with tempfile.TemporaryDirectory(prefix="tracefork-ci-") as place:
            for _ in range(self.runs):
                run = _live(entry, here, Path(place))
                if not run.captured:
                    return _undecided(one, f"live run {passed + failed + 1} made no call", run.said)
                if self._is_good(run.ended):
                    passed += 1
                else:
                    failed, said = failed + 1, run.said
                    blamed = blamed or self._blame(entry, here, Path(place))
                if verdict_on(passed, failed, self.rate, _CONFIDENCE) is not None:
                    break
        return self._judged(one, passed, failed, blamed, said)

    def _is_good(self, ended: Ended) -> bool:
        try:
            return bool(self.oracle(ended))
        except LookupError:
            return False

    def _judged(
        self, one: Checked, passed: int, failed: int, blamed: str, said: list[str]
    ) -> Checked:
        counted = f"passed {passed} of {passed + failed} live runs"
        verdict = verdict_on(passed, failed, self.rate, _CONFIDENCE)
        blamed = f"; {blamed}" if blamed else ""
        if verdict == PASS:
            return msgspec.structs.replace(one, live=f"{counted}: {self.rate:.0%} or more")
        if verdict == FAIL:
            return msgspec.structs.replace(
                one,
                verdict=Verdict.FAIL,
                exit=DIFFERENT,
                reason=f"{counted}: less than {self.rate:.0%}{blamed}",
                said=said,
            )
        more = missing_runs(passed, failed, self.rate, _CONFIDENCE)
        need = "many more live runs" if more is None else f"{more} more live runs that pass"
        words = f"{counted}, so {self.rate:.0%} is not certain{blamed}"
        return msgspec.structs.replace(
            one, verdict=Verdict.UNDECIDED, exit=DIFFERENT, reason=words, missing=need
        )

    def _blame(self, entry: Entry, here: Path, place: Path) -> str:
        """Return which step made the last live run fail, as far as the budget says."""
        if not self.blame_budget:
            return ""
        words = ["blame", "--json", "--yes", "--oracle", self.words, "--budget", self.blame_budget]
        command = ["tracefork_core.cli.main", *words, str(place / _TAPE), *entry.agent.argv]
        done = child_python.run(command, here, os.environ)
        return str(done.document.get("sentence") or done.reason).rstrip(".")


@dataclass(frozen=True, slots=True)
class _Run:
    ended: Ended
    captured: bool
    said: list[str]


def _live(entry: Entry, here: Path, place: Path) -> _Run:
    """Record one live run; its output is what the oracle reads."""
    tape = place / _TAPE
    words: Sequence[str] = ["record", "--overwrite", "-o", str(tape), *entry.recording]
    done = subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "tracefork_core.cli.main", *words, *entry.agent.argv],
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode("utf-8", "backslashreplace").splitlines()
    output = done.stdout.decode("utf-8", "backslashreplace")
    return _Run(Ended(done.returncode, output), _has_exchanges(tape), said)


def _has_exchanges(path: Path) -> bool:
    from tracefork_core.errors import TraceforkError
    from tracefork_core.tape import Tape

    try:
        with Tape.open(path) as tape:
            return any(exchange.status is not None for exchange in tape.exchanges)
    except TraceforkError:
        return False


def _undecided(one: Checked, reason: str, said: list[str]) -> Checked:
    return msgspec.structs.replace(
        one,
        verdict=Verdict.UNDECIDED,
        exit=DIFFERENT,
        reason=reason,
        missing="a model that answers (its key, its address)",
        said=said,
    )
