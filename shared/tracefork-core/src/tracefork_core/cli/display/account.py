"""The totals of a tape: model calls, tokens, cost, bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from urllib.parse import urlsplit

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.providers import ModelCall, ToolCallPart, model_call
from tracefork_core.providers.hosts import provider_of
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import ToolCalls, counted
from tracefork_core.tape import Exchange, Receipt, Tape

_SHORT, _FEW = 1_000, 100
"""A listing reads tapes of up to `_SHORT` exchanges whole, and `_FEW` exchanges of longer ones."""


@dataclass(frozen=True, slots=True)
class Account:
    """The totals of one tape.

    Attributes:
        exchanges: number of exchanges.
        model_calls: exchanges that call a model.
        models: models called, in order of appearance.
        lanes: number of lanes that made requests.
        wire: bytes of all bodies, sent and received.
        spent: US dollars for calls with a known price; None if no price is known.
        unpriced: answered model calls without a known price.
        untaped_calls: calls of tools that are not on the tape, with the exchange that holds each.
    """

    exchanges: int
    model_calls: int
    models: tuple[str, ...]
    lanes: int
    wire: int
    spent: Decimal | None
    unpriced: int
    untaped_calls: tuple[tuple[Exchange, ToolCallPart], ...] = ()

    @property
    def untaped(self) -> dict[str, int]:
        """The tools that ran without being on the tape, with the number of their calls."""
        return counted(self.untaped_calls)

    @property
    def cost(self) -> Decimal | None:
        """Cost of the run; None unless every answered model call has a known price."""
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
            "untaped": self.untaped,
        }


def glance(tape: Tape) -> Account:
    """Return the totals of a tape without reading a long one to the end.

    Above 1,000 exchanges, only the first 100 are read and the cost is unknown.
    """
    exchanges = tape.exchanges
    if len(exchanges) <= _SHORT:
        return take_account(tape)
    models = {model_name(call): None for one in exchanges[:_FEW] if (call := model_call(one))}
    lanes = {exchange.lane for exchange in exchanges}
    wire = sum(sum(exchange.aside.sizes) for exchange in exchanges)
    return Account(len(exchanges), len(exchanges), tuple(models), len(lanes), wire, None, 0)


def sealed_account(receipt: Receipt) -> Account:
    """Return the totals in the receipt of a tape that cannot be opened here."""
    return Account(receipt.exchanges, 0, (), 0, 0, None, 0)


def take_account(tape: Tape) -> Account:
    """Return the totals of a tape, reading each exchange once.

    Raises:
        TapeError: the tape is corrupt.
    """
    wire = unpriced = 0
    models: dict[str, None] = {}
    spent: Decimal | None = None
    calls = 0
    tools = ToolCalls()
    for exchange in tape.exchanges:
        wire += sum(wire_sizes(exchange))
        call = model_call(exchange)
        tools.add(exchange, call)
        if call is None:
            continue
        calls += 1
        models.setdefault(model_name(call))
        if (price := price_of(exchange, call)) is not None:
            spent = (spent or Decimal(0)) + price
        elif call.error is None:
            unpriced += 1  # A refused call (429, 500) is not charged.
    lanes = {exchange.lane for exchange in tape.exchanges}
    return Account(
        exchanges=len(tape.exchanges),
        model_calls=calls,
        models=tuple(models),
        lanes=len(lanes),
        wire=wire,
        spent=spent,
        unpriced=unpriced,
        untaped_calls=tuple(tools.untaped),
    )


def wire_sizes(exchange: Exchange) -> tuple[int, int]:
    """Return the bytes sent and received; 0 sent if the tape holds only hashes."""
    sent = len(exchange.request_body) if exchange.has_bodies else 0
    return sent, sum(exchange.aside.sizes)


def known_cost(tape: Tape) -> Decimal | None:
    """Return the cost of the run; read no body if no price can be known."""
    hosts = {urlsplit(exchange.url).hostname or "" for exchange in tape.exchanges}
    if not find_spec("genai_prices") or not any(provider_of(host) for host in hosts):
        return None
    return take_account(tape).cost


def live_cost(branch: Tape) -> Decimal | None:
    """Return the cost of a branch's live calls; None unless every price is known."""
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
    """Return the requested model, printable."""
    return printable(call.request_model or call.response_model or figures.UNKNOWN)


def dollars(amount: Decimal | None) -> str | None:
    """Return an amount as JSON holds it: a decimal string, or None."""
    return None if amount is None else format(amount.normalize(), "f")
