"""What a blame may take: dollars, live calls, tokens, time."""

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
"""An agent that asks so many times as often as it did, and as many times more, does not end."""
INSISTING = 3
"""How often an oracle that is refused may ask for one grade."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits; None is none."""

    usd: float | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    @classmethod
    def read(cls, text: str) -> Budget:
        """Read "$5", "200 calls", "1.5M tokens", "10m", or several of them with commas between.

        Raises:
            UsageError: it says something else.
        """
        found: dict[str, float] = {}
        for part in text.split(","):
            word = part.strip()
            if match := _USD.fullmatch(word):
                found["usd"] = float(match[1] or match[2])
            elif match := _COUNT.fullmatch(word):
                name = "calls" if match[3].lower().startswith("call") else "tokens"
                found[name] = int(float(match[1]) * _TIMES[match[2].lower()])
            elif match := _TIME.fullmatch(word):
                found["seconds"] = float(match[1]) * _SECONDS[match[2].lower()]
            else:
                raise UsageError(
                    f"tracefork: a budget is $5, '200 calls', '1M tokens' or 10m, not {word!r}."
                )
        return cls(**found)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """Return the limits as they are said; nothing without any."""
        parts = [] if self.usd is None else [f"${self.usd:g}"]
        parts += [] if self.calls is None else [f"{self.calls} calls"]
        parts += [] if self.tokens is None else [f"{self.tokens} tokens"]
        return ", ".join(parts + ([] if self.seconds is None else [f"{self.seconds:g} s"]))


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a batch of forks may take.

    Attributes:
        calls: live calls of each fork.
        grading: calls that the oracle may have made when the batch is done, those before counted;
            None for as many as it takes.
    """

    calls: list[int]
    grading: int | None = None


@dataclass(frozen=True, slots=True)
class _Limit:
    """What is left of one limit, and what a call of the agent and one of the oracle take of it.

    Whole numbers, dollars as well: sums of fractions fall short of what they should be.
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
        usd: what each unit cost when it was recorded, None where that is not known.
        tokens: how many each unit spent, None where that is not known.
        grading: what the oracle spent so far, where it asks a model, and what a call takes at most.
        free: units that are no calls: token counts.
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
                "tracefork: a budget in tokens needs answers that tell how many they spent, and "
                "there is one that does not (OpenAI's streams do with stream_options="
                "{'include_usage': True}). Give it in calls."
            )
        if self.budget.usd is None:
            return
        where = "in calls or tokens"
        if None in self.usd:
            raise UsageError(
                "tracefork: a budget in dollars needs a known price for every model of the run, "
                "and there is one without. `pip install 'tracefork-core[prices]'`, or give it "
                f"{where}."
            )
        if self.grading.dearest.usd is None:
            raise UsageError(
                "tracefork: a budget in dollars needs a known price for the judge, which is held "
                "to it as well, and there is none. `pip install 'tracefork-core[prices]'`, or "
                f"give it {where}."
            )

    @property
    def share(self) -> float | None:
        """How much of the budget is used up, from 0 to 1; None without one."""
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
        """Dollars that were spent, those of the oracle too."""
        return self.spent_usd + self._dollars(self.grading.total, self.grading.dearest.usd)

    def add(self, trial: Trial) -> None:
        """Count what a trial spent."""
        self.spent_usd += self._dollars(trial, self._dearest)
        self.spent_calls += trial.calls
        self.spent_tokens += trial.tokens

    def limits(
        self, probes: Sequence[Probe], lost: Sequence[Spent], grades: int = 0
    ) -> Allowed | None:
        """Return what a batch may take; None where not all of it can be paid for.

        What was `lost` to attempts before is spent; `grades` is how many calls of an oracle the
        batch needs. All together stay within the budget however they turn out: in calls exactly,
        in dollars and tokens as far as no call takes more than the dearest before it.
        """
        wanted = [self.live(probe) for probe in probes]
        rest = [limit.after(sum(wanted), grades) for limit in self._rest(lost)]
        if (any(wanted) or grades) and (self._is_late or any(limit.left < 0 for limit in rest)):
            return None
        again = grades * (INSISTING - 1)
        again = max(0, min([again, *(one.left // one.grade for one in rest if one.grade)]))
        rest = [limit.after(0, again) for limit in rest]
        left = min((limit.left // limit.call for limit in rest if limit.call), default=None)
        found = []
        for live in wanted:
            more = (_RUNAWAY - 1) * live + _RUNAWAY if live else 0
            if left is not None:
                more = min(left, more) if live else 0
                left -= more
            found.append(live + more)
        made = self.grading.total.calls
        return Allowed(found, made + grades + again if rest else None)

    def _rest(self, lost: Sequence[Spent]) -> list[_Limit]:
        """Return what is left of each limit but time."""
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
        """Return what some calls are counted as: where there is a limit, unknown is no less."""
        if spent.usd is not None:
            return spent.usd
        return 0.0 if self.budget.usd is None else spent.calls * (dearest or 0.0)

    @property
    def _is_late(self) -> bool:
        limit = self.budget.seconds
        return limit is not None and time.monotonic() - self._began >= limit

    def live(self, probe: Probe) -> int:
        """Return how many calls of a probe are live."""
        last = len(self.usd) - 1 if probe.until is None else probe.until
        kept = probe.held.union(self.free, (unit for unit, _ in probe.given))
        return sum(n not in kept for n in range(last + 1))


def _pico(usd: float) -> int:
    return round(usd * 1e12)


def take_ticket(folder: Path, most: int | None) -> bool:
    """Take the next number, which nobody else has; return whether there was one below the limit."""
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
    """Return how many were taken."""
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0


_MINUTE = 60.0


class Pacer:
    """Says when forks may begin. What one fork asks of its own is not held back.

    Args:
        rate: live calls a minute; None for as many as come.
        clock: seconds that only grow.
        sleep: waits for some seconds.

    Raises:
        UsageError: the rate is none.
    """

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(
                "tracefork: a rate (--rate) is a number of live calls a minute, above 0."
            )
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._made: deque[tuple[float, int]] = deque()

    def take(self, live: Sequence[int]) -> int:
        """Wait until the first of some forks may begin; return how many may begin with it.

        `live` says how many calls each of them is going to make. One that makes more than a minute
        allows begins when nothing was asked for a minute.
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
        """Count the live calls of a fork that is over."""
        if self._rate is not None and calls:
            self._made.append((self._clock(), calls))

    def _recent(self) -> int:
        """Return how many calls were made in the last minute."""
        since = self._clock() - _MINUTE
        while self._made and self._made[0][0] <= since:
            self._made.popleft()
        return sum(calls for _, calls in self._made)
