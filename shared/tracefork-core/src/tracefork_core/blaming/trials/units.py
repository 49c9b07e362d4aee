"""The units of a run: what each asked, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from tracefork_core.blaming.trials.spending import Spent, charge
from tracefork_core.errors import UsageError
from tracefork_core.providers import ModelCall
from tracefork_core.providers.decode import model_call
from tracefork_core.tape import Exchange, Tape

_QUOTED = 32


class UnitName(msgspec.Struct, frozen=True, kw_only=True):
    """A unit in words: its step from the root down, the line that asked, and what was asked.

    `said` is how a model's answer begins, where step and line are those of other units too. `usd`
    is what it cost by the prices that a blame reckoned with, None where that was not known.
    """

    unit: int
    asked: str
    step: tuple[str, ...] = ()
    caller: str | None = None
    said: str = ""
    usd: float | None = None
    tokens: int = 0

    @property
    def words(self) -> str:
        """Return the shortest words that a person recognises it by."""
        words = " ▸ ".join(self.step) or self.caller or self.asked
        return f"{words} → {self.said}" if self.said else words


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run before anything is tried.

    Attributes:
        digest: of the run.
        usd: what each unit cost; None where its price is not known.
        tokens: how many each spent; None where its answer does not say.
        costs: what the engine weighs forks by: dollars where all are known, else calls.
        units: each in words.
        crash: the exception that the run ended with, None where it ran to its end.
    """

    digest: str
    usd: list[float | None]
    tokens: list[int | None]
    costs: list[float]
    units: tuple[UnitName, ...]
    crash: str | None

    @classmethod
    def of(cls, tape: Tape) -> Run:
        """Read a tape.

        Raises:
            UsageError: it holds nothing that could be to blame.
        """
        exchanges = tape.exchanges
        if not exchanges:
            raise UsageError(
                f"tracefork: {tape.path} has no exchange that could be to blame: nothing crossed a "
                "seam. `tracefork doctor` lists what has one."
            )
        usd: list[float | None] = []
        tokens: list[int | None] = []
        names = []
        for exchange in exchanges:
            call = model_call(exchange)
            spent = Spent()
            charge(spent, exchange, call)
            usd.append(spent.usd)
            tokens.append(None if _is_unsaid(exchange, call) else spent.tokens)
            asked = f"{exchange.method} {exchange.url.partition('?')[0]}"
            if call is not None and call.error is None:
                asked = call.request_model or asked
            said = f"'{_shortened(call.text)}'" if call and call.text else _calls(call)
            name = _named(tape, exchange, asked, said)
            names.append(msgspec.structs.replace(name, usd=spent.usd, tokens=spent.tokens))
        receipt = tape.receipt
        crash = None if receipt is None or receipt.outcome == "ok" else receipt.outcome
        return cls(tape.digest, usd, tokens, _costs(usd), _told_apart(names), crash)

    def at(self, prices: Sequence[float | None]) -> Run:
        """Return the run with what its units cost by other prices than those of today."""
        units = tuple(
            msgspec.structs.replace(unit, usd=usd)
            for unit, usd in zip(self.units, prices, strict=True)
        )
        return replace(self, usd=list(prices), costs=_costs(prices), units=units)


def _is_unsaid(exchange: Exchange, call: ModelCall | None) -> bool:
    """Return whether a model answered and did not say how many tokens that spent."""
    if call is None or call.error is not None or exchange.is_auxiliary:
        return False
    return call.usage is None


def _costs(usd: Sequence[float | None]) -> list[float]:
    known = [price for price in usd if price is not None]
    return known if len(known) == len(usd) and sum(known) > 0 else [1.0] * len(usd)


def _named(tape: Tape, exchange: Exchange, asked: str, said: str) -> UnitName:
    step, caller = exchange.step_path, exchange.aside.caller
    return UnitName(unit=exchange.n, asked=asked, step=step, caller=caller, said=said)


def _told_apart(names: Sequence[UnitName]) -> tuple[UnitName, ...]:
    """Keep what was said only of units that step and line do not tell apart."""
    bare = [msgspec.structs.replace(name, said="") for name in names]
    units = Counter(name.words for name in bare)
    pairs = zip(names, bare, strict=True)
    return tuple(name if units[short.words] > 1 else short for name, short in pairs)


def _calls(call: ModelCall | None) -> str:
    """Return "find_order(number=17)" of an answer that calls a tool."""
    calls = []
    for one in call.tool_calls if call else ():
        named = one.arguments.items() if isinstance(one.arguments, dict) else ()
        calls.append(f"{one.name}({', '.join(f'{name}={value!r}' for name, value in named)})")
    return _shortened(", ".join(calls))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _QUOTED else f"{words[: _QUOTED - 1]}…"


_CALLS, _POWER = 9.0, 1.2
"""Live calls to a decisive step are about 9 n^1.2: the means that were measured on planted runs of
8 to 64 units lie within 10 % of that."""
_STRUCTURE = 2.2
"""How many times as many it takes with certificate, second causes and controls."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`usd` is None where a price is not known."""

    calls: int
    usd: float | None


def estimate(run: Run) -> Estimate:
    """Return about how many live calls a blame of this run makes, and what they cost."""
    size = len(run.units)
    calls = round(_CALLS * size**_POWER * _STRUCTURE)
    known = [price for price in run.usd if price is not None]
    if len(known) < size:
        return Estimate(calls, None)
    return Estimate(calls, calls * sum(known) / size)
