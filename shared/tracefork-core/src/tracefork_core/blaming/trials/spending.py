"""Add up what the live part of a branch cost, and compare its answers with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path

from tracefork_core.errors import TapeError
from tracefork_core.providers import ModelCall
from tracefork_core.providers.decode import model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.session.forking import RECORDED
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.schema import BESIDE


@dataclass(slots=True)
class Spent:
    """What some live calls cost.

    Attributes:
        calls: number of calls.
        tokens: input and output tokens.
        usd: dollars; None if a price is not known.
        same: for each unit drawn again in its recorded context, whether the answer was the same.
    """

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    same: dict[int, bool] = field(default_factory=dict)

    def add(self, other: Spent) -> None:
        """Add calls, tokens and dollars; `same` stays, since it belongs to one branch."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.usd = None if self.usd is None or other.usd is None else self.usd + other.usd


@dataclass(frozen=True, slots=True)
class Spending:
    """What an oracle that calls a model spent in total, and the most that one call of it took."""

    total: Spent
    dearest: Spent


def spent_by(branch: Path) -> Spent:
    """Add up the live calls of a branch; a branch that does not exist cost nothing."""
    spent = Spent()
    if not branch.exists():
        return spent
    with Tape.open(branch) as tape:
        if tape.origin is None:
            return spent
        own = tape.exchanges[tape.origin.at :]
        with Tape.open(branch.with_name(tape.origin.name)) as parent:
            spent.same = dict(_redrawn(own, parent.exchanges))
        for exchange in own:
            if not exchange.aside.answered and not exchange.is_auxiliary:
                spent.calls += 1
                charge(spent, exchange, model_call(exchange))
    return spent


def set_aside(branch: Path) -> None:
    """Rename what an unreported attempt left behind, so that the next attempt can use the name."""
    if not branch.exists():
        return
    name = next(path for path in _asides(branch) if not path.exists()).name
    for suffix in (*BESIDE, ""):
        file = branch.with_name(branch.name + suffix)
        if file.exists():
            file.replace(branch.with_name(name + suffix))


def lost_with(branch: Path) -> Spent:
    """Add up what unreported attempts spent, renamed or not."""
    lost = Spent()
    for path in (branch, *takewhile(Path.exists, _asides(branch))):
        try:
            lost.add(spent_by(path))
        except TapeError:  # The process died before the tape was valid.
            continue
    return lost


def _asides(branch: Path) -> Iterator[Path]:
    return (branch.with_name(f"{branch.stem}.lost{n}.tape") for n in count())


def charge(spent: Spent, exchange: Exchange, call: ModelCall | None) -> None:
    """Add the tokens and the price of an exchange; other than model calls cost nothing."""
    if call is None or call.error is not None or exchange.is_auxiliary:
        return  # Failed calls and token counts are free.
    if call.usage is not None:
        spent.tokens += (call.usage.input_tokens or 0) + (call.usage.output_tokens or 0)
    price = price_of(exchange, call)
    spent.usd = None if price is None or spent.usd is None else spent.usd + float(price)


def _redrawn(own: list[Exchange], recorded: list[Exchange]) -> Iterator[tuple[int, bool]]:
    """Yield (unit, same answer) for live units, up to and including the first that differs."""
    for exchange in own:
        unit = exchange.aside.place
        if exchange.aside.answered == RECORDED:
            continue
        if exchange.is_auxiliary and unit is None:
            continue
        if unit is None or exchange.aside.answered:
            return
        same = meaning(exchange) == meaning(recorded[unit])
        yield unit, same
        if not same and not exchange.is_auxiliary:
            return


def meaning(exchange: Exchange) -> object:
    """Return the content of an answer without ids, times and counts, to compare two answers."""
    call = model_call(exchange)
    if call is None or call.error is not None:
        return exchange.status, exchange.failure, exchange.response_body
    calls = tuple((one.name, repr(one.arguments)) for one in call.tool_calls)
    return exchange.status, call.text, calls
