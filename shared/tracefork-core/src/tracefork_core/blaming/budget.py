"""What a blame may take: dollars, live calls, tokens, time."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from tracefork_core.blaming.probe import Probe, Trial
from tracefork_core.blaming.taken import Taken
from tracefork_core.errors import UsageError

_USD = re.compile(r"\$\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s*(?:\$|usd|dollars?)", re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([km]?)\s*(calls?|tokens?)", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SLACK = 2.0


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


@dataclass(slots=True)
class Purse:
    """What is left of a budget.

    Attributes:
        budget: the limits.
        usd: what each unit cost when it was recorded, None where that is not known.
        tokens: how many each unit took.
    """

    budget: Budget
    usd: Sequence[float | None]
    tokens: Sequence[int]
    spent_usd: float = 0.0
    spent_calls: int = 0
    spent_tokens: int = 0
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.budget.usd is not None and None in self.usd:
            raise UsageError(
                "tracefork: a budget in dollars needs a known price for every model of the run, "
                "and there is one without. `pip install 'tracefork-core[prices]'`, or give it in "
                "calls or tokens."
            )

    @property
    def share(self) -> float | None:
        """How much of the budget is used up, from 0 to 1; None without one."""
        limits = (
            (self.spent_usd, self.budget.usd),
            (self.spent_calls, self.budget.calls),
            (self.spent_tokens, self.budget.tokens),
            (time.monotonic() - self._began, self.budget.seconds),
        )
        return max((spent / limit for spent, limit in limits if limit), default=None)

    def book(self, trial: Trial) -> None:
        """Count what a trial took."""
        self.spent_usd += trial.usd or 0.0
        self.spent_calls += trial.calls
        self.spent_tokens += trial.tokens

    def limits(self, probes: Sequence[Probe], lost: Sequence[Taken]) -> list[int] | None:
        """Return how many live calls each of these may make; None where not all can be paid for.

        What was `lost` to attempts before is spent. All of them together stay within the budget
        however they turn out: in calls exactly, in dollars and tokens as far as no call takes more
        than the dearest that was recorded.
        """
        wanted = [self.live(probe) for probe in probes]
        left = self._left(lost) - sum(wanted)
        if left < 0 and any(wanted):
            return None
        found = []
        for live in wanted:
            more = int(min(left, live * (_SLACK - 1) + 1)) if live else 0
            left -= more
            found.append(live + more)
        return found

    def _left(self, lost: Sequence[Taken]) -> float:
        """Return how many live calls can still be paid for."""
        budget, left = self.budget, [inf]
        calls = self.spent_calls + sum(one.calls for one in lost)
        usd = self.spent_usd + sum(one.usd or 0.0 for one in lost)
        tokens = self.spent_tokens + sum(one.tokens for one in lost)
        if budget.seconds is not None and time.monotonic() - self._began >= budget.seconds:
            return 0
        if budget.calls is not None:
            left.append(budget.calls - calls)
        if budget.usd is not None and (dearest := max(price or 0.0 for price in self.usd)):
            left.append((budget.usd - usd) // dearest)
        if budget.tokens is not None and (longest := max(self.tokens)):
            left.append((budget.tokens - tokens) // longest)
        return min(left)

    def live(self, probe: Probe) -> int:
        """Return how many units of a probe are live."""
        given = {unit for unit, _ in probe.given}
        last = len(self.usd) - 1 if probe.until is None else probe.until
        return sum(n not in probe.held and n not in given for n in range(last + 1))
