"""Compare what verifiers return now with what they returned when the run was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tracefork_core.evidence.actions import Action, Result, result_of
from tracefork_core.seams.tools.verifying import Rerun


class Verification(msgspec.Struct, frozen=True):
    """One call of a verifier, then and now.

    Attributes:
        n: the exchange that holds it.
        tool: its name.
        recorded: what came of it then.
        now: what comes of it now, once for each run.
    """

    n: int
    tool: str
    recorded: Result
    now: list[Result]

    @property
    def verdict(self) -> str:
        """The verdict: "same", "flaky" (not each run ends alike), or "different"."""
        alike = [_key(one) == _key(self.recorded) for one in self.now]
        if all(alike):
            return "same"
        return "flaky" if len({_key(one) for one in self.now}) > 1 else "different"

    @property
    def words(self) -> str:
        """Return "failed with exit 1 then, passed 2 of 5 runs now: flaky"."""
        runs, first = len(self.now), self.now[0]
        alike = sum(_key(one) == _key(self.recorded) for one in self.now)
        passed = sum(one.status == "ok" for one in self.now)
        now = f"passed {passed} of {runs} runs" if runs > 1 else _words(first)
        if any(_is_open(one) for one in (self.recorded, *self.now)):
            # "passed" would be a guess: the result names no exit code.
            if runs > 1:
                now = f"the same in {alike} of {runs} runs"
            elif first.status == "ok":
                now = "the same" if alike else "another result"
        elif not alike and not passed and self.recorded.status == "error":
            now += " in another way"
        return f"{_words(self.recorded)} then, {now} now: {self.verdict}"


def verifications(actions: Sequence[Action], runs: Sequence[Rerun]) -> list[Verification]:
    """Put the runs of verifiers beside the calls on the tape, in their order."""
    recorded = {action.n: action for action in actions if action.kind == "tool"}
    now: dict[int, list[Result]] = defaultdict(list)
    for run in runs:
        now[run.n].append(result_of(run.body, run.failure))
    return [
        Verification(n, action.tool or "", action.result or Result("unknown"), now[n])
        for n, action in sorted(recorded.items())
        if n in now
    ]


def _key(result: Result) -> tuple[str, int | None, str | None]:
    return result.status, result.exit_code, result.signature


def _is_open(result: Result) -> bool:
    return result.status == "ok" and result.exit_code is None


def _words(result: Result) -> str:
    if _is_open(result):
        return "returned a result"
    verb = {"ok": "passed", "error": "failed"}.get(result.status, "unknown")
    code = "" if result.exit_code is None else f" with exit {result.exit_code}"
    return f"{verb}{code}"
