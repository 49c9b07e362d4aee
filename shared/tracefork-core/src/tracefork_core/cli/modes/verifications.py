"""Compare what verifiers return now with what they returned when the run was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tracefork_core.evidence.actions import Action, Result, result_of
from tracefork_core.seams.tools.verifying import Rerun
from tracefork_core.tape import Exchange, Tape


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
        passed = sum(one.status == "ok" for one in self.now)
        runs = len(self.now)
        now = f"passed {passed} of {runs} runs" if runs > 1 else _words(self.now[0])
        return f"{_words(self.recorded)} then, {now} now: {self.verdict}"


def verifications(
    tape: Tape, actions: Sequence[Action], runs: Sequence[Rerun], times: int
) -> list[Verification]:
    """Pair the runs of verifiers with the calls on the tape, in their order."""
    recorded = {action.n: action.result for action in actions if action.kind == "tool"}
    calls: dict[tuple[str, bytes], list[Exchange]] = defaultdict(list)
    for exchange in tape.exchanges:
        name = exchange.url.removeprefix("tool:")
        if name != exchange.url and exchange.has_bodies:
            calls[name, exchange.request_body].append(exchange)
    groups: dict[tuple[str, bytes], list[Rerun]] = defaultdict(list)
    for run in runs:
        groups[run.tool, run.asked].append(run)
    found = []
    for key, group in groups.items():
        for exchange, start in zip(calls[key], range(0, len(group), times), strict=False):
            now = [result_of(run.body, run.failure) for run in group[start : start + times]]
            then = recorded.get(exchange.n) or Result("unknown")
            found.append(Verification(exchange.n, key[0], then, now))
    return sorted(found, key=lambda one: one.n)


def _key(result: Result) -> tuple[str, int | None, str | None]:
    return result.status, result.exit_code, result.signature


def _words(result: Result) -> str:
    verb = {"ok": "passed", "error": "failed"}.get(result.status, "unknown")
    code = "" if result.exit_code is None else f" with exit {result.exit_code}"
    return f"{verb}{code}"
