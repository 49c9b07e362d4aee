"""Fork the run for one candidate after another, grade each, and limit the live calls."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.trial import Job, branch_name
from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.session.interventions import Intervention
from tracefork_core.tape import Tape

Changes = Mapping[int, Intervention]
BEST = "smallest.tape"


class BudgetEndedError(TraceforkError):
    """The live calls of a shrinking are used up: the search ends with the best so far."""


class Attempts:
    """Runs candidates.

    Attributes:
        best: the branch of the last accepted candidate, in the scratch folder; None before it.
        trials: how many forks were run; `calls` and `usd` are those of the live calls.
        undecided: how many candidates could not be graded or contradicted themselves.
        reasons: why, each reason once.
    """

    def __init__(self, job: Job, pool: Pool, budget: Budget, confirm: int) -> None:
        self._job = job
        self._pool = pool
        self._budget = budget
        self._confirm = confirm
        self._ending = ""
        self._began = time.monotonic()
        self.best: Path | None = None
        self.trials = 0
        self.calls = 0
        self.usd: float | None = 0.0
        self.undecided = 0
        self.reasons: dict[str, None] = {}

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.monotonic() - self._began

    def grade_recording(self) -> str | None:
        """Grade the recorded run as often as a candidate; return why it gives no verdict, if so.

        Raises:
            UsageError: the recording does not fail, or cannot be graded.
        """
        failed = 0
        for _ in range(self._confirm):
            trial = self._tried({}, is_live=False)
            if trial.failed is None:
                raise UsageError(f"tracefork: the recording cannot be graded: {trial.undefined}.")
            failed += trial.failed
            with Tape.open(self._branch(self.trials - 1)) as tape:
                self._ending = _ending_of(tape)
        if not failed:
            raise UsageError(
                "tracefork: the recording itself does not fail this check, so there is nothing to "
                "shrink. The oracle (--oracle) decides which runs are good."
            )
        if failed < self._confirm:
            return f"the oracle failed the recording {failed} of {self._confirm} times"
        return None

    def fails(self, changes: Changes, *, is_live: bool = False, again: bool = False) -> bool:
        """Return whether the run still fails with these changes.

        A live candidate has to fail `confirm` times, and so has any if `again`. A candidate that
        cannot be graded, or fails only sometimes, does not count as failing.

        Raises:
            BudgetEndedError: the live calls that this needs are not left.
        """
        for i in range(self._confirm if is_live or again else 1):
            trial = self._tried(changes, is_live=is_live)
            branch = self._branch(self.trials - 1)
            if trial.failed is False:
                return self._doubt(f"a candidate failed {i} of {i + 1} times") if i else False
            reason = trial.undefined if trial.failed is None else self._differs(branch)
            if reason is not None:
                return self._doubt(reason)
        shutil.copyfile(branch, branch.with_name(BEST))
        self.best = branch.with_name(BEST)
        return True

    def _differs(self, branch: Path) -> str | None:
        """Return why a branch is another failure than the recorded one, if it is.

        A request that the provider refuses, or a crash of the agent over an answer that is out of
        place, would else count as the failure that is looked for.
        """
        with Tape.open(branch) as tape:
            ended = _ending_of(tape)
            refused = [
                f"the provider answered {exchange.status or 'with no answer'}"
                for exchange in tape.exchanges
                if not exchange.aside.answered
                and exchange.n >= (tape.branch.at if tape.branch else 0)
                and not 200 <= (exchange.status or 0) < 300
            ]
        if refused:
            return refused[0]
        if ended == self._ending:
            return None
        return f"it ended with {ended}, the recording with {self._ending}"

    def _doubt(self, reason: str) -> bool:
        self.undecided += 1
        self.reasons.setdefault(reason)
        return False

    def _branch(self, number: int) -> Path:
        return Path(self._job.tape).with_name(branch_name(self._job.tape, number))

    def _tried(self, changes: Changes, *, is_live: bool) -> Trial:
        left = self._left() if is_live else 0
        if self.trials:
            self._branch(self.trials - 1).unlink(missing_ok=True)
        job = msgspec.structs.replace(
            self._job,
            number=self.trials,
            branch=branch_name(self._job.tape, self.trials),
            changes=changes,
            calls=left,
        )
        self.trials += 1
        (trial,) = self._pool.run([job])
        self.calls += trial.calls
        self.usd = None if self.usd is None or trial.usd is None else self.usd + trial.usd
        return trial

    def _left(self) -> int | None:
        """Return the live calls that the next fork may make; None for no limit."""
        limits = self._budget
        spent = (
            (limits.usd, self.usd or 0.0),
            (limits.calls, self.calls),
            (limits.seconds, self.seconds),
        )
        if any(limit is not None and used >= limit for limit, used in spent):
            raise BudgetEndedError(f"the budget is used up ({limits.words})")
        return None if limits.calls is None else limits.calls - self.calls


def _ending_of(tape: Tape) -> str:
    return tape.receipt.outcome if tape.receipt else "cut off"


def asked_in(branch: Path, place: int) -> bytes | None:
    """Return the body that the agent sent in the place of an exchange; None if it sent none."""
    with Tape.open(branch) as tape:
        for exchange in tape.exchanges:
            own = exchange.n if exchange.aside.place is None else exchange.aside.place
            if own == place and not exchange.is_auxiliary:
                return exchange.request_body
    return None
