"""Limit what a blame spends: dollars, live calls, tokens, time, and live calls per minute."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.trials.spending import Spending, Spent
from tracefork_core.errors import UsageError

_USD = re.compile(r"\$\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s*(?:\$|usd|dollars?)", re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([km]?)\s*(calls?|tokens?)", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_RUNAWAY = 10
"""A fork may make 10 times the recorded calls, plus 10; above that it counts as an endless loop."""
INSISTING = 3
"""How many calls an oracle may make for one grade, if the first ones are refused."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a blame; None means no limit."""

    usd: float | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    @classmethod
    def read(cls, text: str) -> Budget:
        """Parse "$5", "200 calls", "1.5M tokens", "10m", or several of them separated by commas.

        Raises:
            UsageError: the text has another form.
        """
        limits: dict[str, float] = {}
        for part in text.split(","):
            word = part.strip()
            if match := _USD.fullmatch(word):
                limits["usd"] = float(match[1] or match[2])
            elif match := _COUNT.fullmatch(word):
                name = "calls" if match[3].lower().startswith("call") else "tokens"
                limits[name] = int(float(match[1]) * _TIMES[match[2].lower()])
            elif match := _TIME.fullmatch(word):
                limits["seconds"] = float(match[1]) * _SECONDS[match[2].lower()]
            else:
                raise UsageError(
                    f"tracefork: a budget is $5, '200 calls', '1M tokens' or 10m, not {word!r}."
                )
        return cls(**limits)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """The limits in words; empty without limits."""
        parts = [] if self.usd is None else [f"${self.usd:g}"]
        parts += [] if self.calls is None else [f"{self.calls} calls"]
        parts += [] if self.tokens is None else [f"{self.tokens} tokens"]
        return ", ".join(parts + ([] if self.seconds is None else [f"{self.seconds:g} s"]))


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allowance of a batch of forks.

    Attributes:
        calls: maximum live calls of each fork.
        grading: maximum calls of the oracle in total, from the start of the blame to the end of
            this batch; None for no limit.
    """

    calls: list[int]
    grading: int | None = None


@dataclass(frozen=True, slots=True)
class _Limit:
    """What is left of one limit, and how much of it a call of the agent and of the oracle takes.

    All are integers, dollars too (in picodollars), since sums of floats are not exact.
    """

    left: int
    call: int
    grade: int

    def after(self, calls: int, grades: int) -> _Limit:
        return replace(self, left=self.left - calls * self.call - grades * self.grade)


@dataclass(slots=True)
class Purse:
    """What is left of a budget.

    Attributes:
        budget: the limits.
        usd: cost of each unit in the recording, in dollars; None if it is not known.
        tokens: tokens of each unit in the recording; None if they are not known.
        grading: what an oracle that calls a model spent so far, and the most one call took.
        free: units that do not count as calls: requests that count tokens.
    """

    budget: Budget
    usd: Sequence[float | None]
    tokens: Sequence[int | None]
    grading: Spending = field(default_factory=lambda: Spending(Spent(), Spent()))
    free: frozenset[int] = frozenset()
    spent_usd: float = 0.0
    spent_calls: int = 0
    spent_tokens: int = 0
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.budget.tokens is not None and None in self.tokens:
            raise UsageError(
                "tracefork: a budget in tokens needs every answer to report its tokens, and one "
                "on this tape does not. OpenAI streams report them with stream_options="
                "{'include_usage': True}. Give the budget in calls instead."
            )
        if self.budget.usd is None:
            return
        where = "in calls or tokens"
        if None in self.usd:
            raise UsageError(
                "tracefork: a budget in dollars needs a known price for every model of the run, "
                f"and one has none. Give the budget {where}."
            )
        if self.grading.dearest.usd is None:
            raise UsageError(
                "tracefork: a budget in dollars needs a known price for the judge, which spends "
                f"from it too, and the judge's price is unknown. Give the budget {where}."
            )

    @property
    def share(self) -> float | None:
        """How much of the tightest limit is used up, 0 to 1; None without a budget."""
        graded = self.grading.total
        limits = (
            (self.all_usd, self.budget.usd),
            (self.spent_calls + graded.calls, self.budget.calls),
            (self.spent_tokens + graded.tokens, self.budget.tokens),
            (time.monotonic() - self._began, self.budget.seconds),
        )
        return max((spent / limit for spent, limit in limits if limit), default=None)

    @property
    def all_usd(self) -> float:
        """Dollars spent so far, including those of the oracle."""
        return self.spent_usd + self._dollars(self.grading.total, self.grading.dearest.usd)

    def add(self, trial: Trial) -> None:
        """Add the calls, tokens and dollars of a trial."""
        self.spent_usd += self._dollars(trial, self._dearest)
        self.spent_calls += trial.calls
        self.spent_tokens += trial.tokens

    def limits(
        self, probes: Sequence[Probe], lost: Sequence[Spent], grades: int = 0
    ) -> Allowed | None:
        """Return the allowance of a batch; None if the budget cannot pay for all of it.

        The batch stays within the budget whatever happens: exactly in calls, and in dollars and
        tokens as long as no call costs more than the most expensive one before it.

        Args:
            probes: the batch.
            lost: what earlier attempts at it spent.
            grades: number of oracle calls that it needs.
        """
        wanted = [self.live(probe) for probe in probes]
        rest = [limit.after(sum(wanted), grades) for limit in self._rest(lost)]
        if (any(wanted) or grades) and (self._is_late or any(limit.left < 0 for limit in rest)):
            return None
        again = grades * (INSISTING - 1)
        again = max(0, min([again, *(limit.left // limit.grade for limit in rest if limit.grade)]))
        rest = [limit.after(0, again) for limit in rest]
        left = min((limit.left // limit.call for limit in rest if limit.call), default=None)
        calls = []
        for live in wanted:
            more = (_RUNAWAY - 1) * live + _RUNAWAY if live else 0
            if left is not None:
                more = min(left, more) if live else 0
                left -= more
            calls.append(live + more)
        made = self.grading.total.calls
        return Allowed(calls, made + grades + again if rest else None)

    def _rest(self, lost: Sequence[Spent]) -> list[_Limit]:
        """Return what is left of each limit except time."""
        budget, graded, grade = self.budget, self.grading.total, self.grading.dearest
        limits = []
        if budget.calls is not None:
            calls = self.spent_calls + graded.calls + sum(one.calls for one in lost)
            limits.append(_Limit(budget.calls - calls, 1, 1))
        if budget.usd is not None:
            usd = self.all_usd + sum(self._dollars(one, self._dearest) for one in lost)
            left = _pico(budget.usd - usd)
            limits.append(_Limit(left, _pico(self._dearest), _pico(grade.usd or 0.0)))
        if budget.tokens is not None:
            tokens = self.spent_tokens + graded.tokens + sum(one.tokens for one in lost)
            limits.append(
                _Limit(budget.tokens - tokens, max(n or 0 for n in self.tokens), grade.tokens)
            )
        return limits

    @property
    def _dearest(self) -> float:
        return max(price or 0.0 for price in self.usd)

    def _dollars(self, spent: Spent | Trial, dearest: float | None) -> float:
        """Return the dollars of some calls; under a limit, an unknown price counts as `dearest`."""
        if spent.usd is not None:
            return spent.usd
        return 0.0 if self.budget.usd is None else spent.calls * (dearest or 0.0)

    @property
    def _is_late(self) -> bool:
        limit = self.budget.seconds
        return limit is not None and time.monotonic() - self._began >= limit

    def live(self, probe: Probe) -> int:
        """Return the number of live calls of a probe."""
        last = len(self.usd) - 1 if probe.until is None else probe.until
        kept = probe.held.union(self.free, (unit for unit, _ in probe.given))
        return sum(n not in kept for n in range(last + 1))


def _pico(usd: float) -> int:
    return round(usd * 1e12)


def take_ticket(folder: Path, most: int | None) -> bool:
    """Take the next free ticket in a folder, safely across processes; False if `most` are taken."""
    number = tickets_taken(folder)
    folder.mkdir(exist_ok=True)
    while most is None or number < most:
        try:
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            number += 1
        else:
            return True
    return False


def tickets_taken(folder: Path) -> int:
    """Return the number of tickets taken."""
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0


_MINUTE = 60.0


class Pacer:
    """Delay forks to keep a rate of live calls. It does not slow the calls inside a fork.

    Args:
        rate: live calls per minute; None for no limit.
        clock: returns monotonic seconds.
        sleep: waits for a number of seconds.

    Raises:
        UsageError: the rate is not above 0.
    """

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(
                f"tracefork: a rate (--rate) is in live calls per minute, above 0 (got {rate:g})."
            )
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._made: deque[tuple[float, int]] = deque()

    def take(self, live: Sequence[int]) -> int:
        """Wait until the first of some forks may begin; return how many may begin now.

        `live` is the expected number of calls of each fork. A fork that exceeds the rate by itself
        begins once no call was made for a minute.
        """
        while self._rate is not None:
            recent = self._recent()
            count, planned = 0, 0
            for calls in live:
                if recent + planned + calls > self._rate:
                    break
                count, planned = count + 1, planned + calls
            if count or not recent:
                return max(1, count)
            self._sleep(max(0.0, self._made[0][0] + _MINUTE - self._clock()))
        return len(live)

    def made(self, calls: int) -> None:
        """Count the live calls of a fork that has ended."""
        if self._rate is not None and calls:
            self._made.append((self._clock(), calls))

    def _recent(self) -> int:
        """Return the number of calls in the last minute."""
        since = self._clock() - _MINUTE
        while self._made and self._made[0][0] <= since:
            self._made.popleft()
        return sum(calls for _, calls in self._made)
