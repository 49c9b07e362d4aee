"""What a tape holds in figures: model calls, tokens, cost, bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from urllib.parse import urlsplit

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.providers.hosts import provider_of
from tracefork_core.providers.prices import price_of
from tracefork_core.tape import Exchange, Receipt, Tape

_SHORT, _FEW = 1_000, 100
"""Exchanges of a tape that is read whole to be listed, and of those read of a longer one."""


@dataclass(frozen=True, slots=True)
class Account:
    """The figures of one tape.

    Attributes:
        exchanges: how many there are.
        model_calls: how many of them are calls of a model.
        models: the models that answered, in order of appearance.
        lanes: how many lanes asked.
        wire: bytes of all bodies, both ways.
        spent: US dollars for the calls whose price is known; None where no price is.
        unpriced: how many answered model calls have no known price.
    """

    exchanges: int
    model_calls: int
    models: tuple[str, ...]
    lanes: int
    wire: int
    spent: Decimal | None
    unpriced: int

    @property
    def cost(self) -> Decimal | None:
        """What the run cost, where every answered model call has a known price."""
        return None if self.unpriced else self.spent

    @property
    def cost_words(self) -> str:
        """Return "$0.0143", "$0.0143 for 5 of 6 model calls" or "cost —"."""
        if self.spent is None:
            return f"cost {figures.UNKNOWN}"
        if not self.unpriced:
            return figures.money(self.spent)
        answered = self.model_calls
        return (
            f"{figures.money(self.spent)} for {answered - self.unpriced} of {answered} model calls"
        )

    def document(self) -> dict[str, object]:
        """Return the account as JSON-able values."""
        return {
            "exchanges": self.exchanges,
            "model_calls": self.model_calls,
            "models": list(self.models),
            "lanes": self.lanes,
            "bytes_on_wire": self.wire,
            "cost_usd": dollars(self.cost),
        }


def glance(tape: Tape) -> Account:
    """Take the account of a tape without reading all of a long one.

    Of one with more than a thousand exchanges it says what the first hundred do, and no cost.
    """
    exchanges = tape.exchanges
    if len(exchanges) <= _SHORT:
        return take_account(tape)
    models = {model_name(call): None for one in exchanges[:_FEW] if (call := model_call(one))}
    lanes = {exchange.lane for exchange in exchanges}
    wire = sum(sum(exchange.aside.sizes) for exchange in exchanges)
    return Account(len(exchanges), len(exchanges), tuple(models), len(lanes), wire, None, 0)


def sealed_account(receipt: Receipt) -> Account:
    """Return what its receipt says of a tape that cannot be opened here."""
    return Account(receipt.exchanges, 0, (), 0, 0, None, 0)


def take_account(tape: Tape) -> Account:
    """Read every exchange of a tape once and add it up.

    Raises:
        TapeError: the tape is damaged.
    """
    wire = unpriced = 0
    models: dict[str, None] = {}
    spent: Decimal | None = None
    calls = 0
    for exchange in tape.exchanges:
        wire += sum(wire_sizes(exchange))
        if (call := model_call(exchange)) is None:
            continue
        calls += 1
        models.setdefault(model_name(call))
        if (price := price_of(exchange, call)) is not None:
            spent = (spent or Decimal(0)) + price
        elif call.error is None:
            unpriced += 1  # A refused call (429, 500) is not charged.
    lanes = {exchange.lane for exchange in tape.exchanges}
    return Account(len(tape.exchanges), calls, tuple(models), len(lanes), wire, spent, unpriced)


def wire_sizes(exchange: Exchange) -> tuple[int, int]:
    """Return the bytes sent and received; 0 sent where only the hash of that is kept."""
    sent = len(exchange.request_body) if exchange.has_bodies else 0
    return sent, sum(exchange.aside.sizes)


def known_cost(tape: Tape) -> Decimal | None:
    """Return what the run cost; no body is read where no price can be known."""
    hosts = {urlsplit(exchange.url).hostname or "" for exchange in tape.exchanges}
    if not find_spec("genai_prices") or not any(provider_of(host) for host in hosts):
        return None
    return take_account(tape).cost


def live_cost(branch: Tape) -> Decimal | None:
    """Return what the live calls of a branch cost, where every price is known."""
    at = branch.origin.at if branch.origin else 0
    spent = Decimal(0)
    for exchange in branch.exchanges[at:]:
        call = None if exchange.aside.answered else model_call(exchange)
        if call is None or call.error is not None:
            continue
        if (price := price_of(exchange, call)) is None:
            return None
        spent += price
    return spent


def model_name(call: ModelCall) -> str:
    """Return the model that was asked for, printable."""
    return printable(call.request_model or call.response_model or figures.UNKNOWN)


def dollars(amount: Decimal | None) -> str | None:
    """Return an amount as JSON holds it: a decimal string, or None."""
    return None if amount is None else format(amount.normalize(), "f")
