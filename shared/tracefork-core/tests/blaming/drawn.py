"""A provider that draws by trial and step, and the outcome of a blame without its timings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import sha256

import msgspec

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.report import Report
from tracefork_testkit import ModelRequest, ProviderServer, ReceivedRequest, Reply
from tracefork_testkit.http1 import Delivery

ROOT = 2
NO_TRIAL = "None"


class Drawing(ProviderServer):
    """A provider that decides at step `ROOT` at random, and repeats the decision afterwards.

    Attributes:
        asked: number of calls of each trial; the recording is the trial "None".
    """

    def __init__(self) -> None:
        super().__init__(self._drawn)
        self.asked: Counter[str] = Counter()
        self._trial = NO_TRIAL
        self._calls: dict[int, Callable[[], object]] = {}

    def at_call(self, number: int, act: Callable[[], object]) -> None:
        """Call `act` before the live call with this number, over all trials, is answered."""
        self._calls[number] = act

    def answer(self, received: ReceivedRequest) -> Delivery | Awaitable[Delivery]:
        self._trial = received.header("x-trial") or NO_TRIAL
        self.asked[self._trial] += 1
        self._calls.pop(self.live, lambda: None)()
        return super().answer(received)

    def _drawn(self, request: ModelRequest) -> Reply:
        step, before = request.last_user_text.removeprefix("step ").split(" after: ")
        if int(step) > ROOT:
            return Reply(before.split()[-1])
        chance = sha256(f"{self._trial} {step}".encode()).digest()[0]
        if int(step) < ROOT:
            return Reply(f"looked up {chance}")
        return Reply("deny" if self._trial == NO_TRIAL or chance < 40 else "refund")

    def forget(self) -> None:
        """Reset the counts."""
        self.asked.clear()

    @property
    def live(self) -> int:
        """Number of calls that forks made."""
        return self.asked.total() - self.asked[NO_TRIAL]


def outcome(report: Report) -> object:
    """Return a report's result and draws without what they cost."""
    result = msgspec.to_builtins(report.result)
    del result["ledger"]
    draws = [(one.number, one.probe, one.failed, one.same, one.undefined) for one in report.draws]
    return result, draws


QUICK = Settings(credible=0.9, samples=60)
SHORT = Settings(patience=1.0, samples=60, grades=1)
"""Ends early without an answer, for tests that start a process for each fork."""
