"""The totals of a tape: model calls, tokens, cost, bytes on the wire."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.tool_call import is_tool
from tracefork_core.providers import ModelCall, ToolCallPart, model_call
from tracefork_core.providers.hosts import provider_of
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import ToolCalls, counted
from tracefork_core.tape import Exchange, Receipt, Tape

SHORT, _FEW = 1_000, 100
"""A listing reads tapes of up to `SHORT` exchanges whole, and `_FEW` exchanges of longer ones."""


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
        tokens: tokens asked and answered, as far as answers say; None if none does.
        tools: exchanges that call a tool.
    """

    exchanges: int
    model_calls: int
    models: tuple[str, ...]
    lanes: int
    wire: int
    spent: Decimal | None
    unpriced: int
    untaped_calls: tuple[tuple[Exchange, ToolCallPart], ...] = ()
    tokens: tuple[int, int] | None = None
    tools: int = 0

    def kinds(self, model: str = "model") -> str:
        """Return "6 model, 2 tool, 1 HTTP" with another word for model; empty without a model."""
        if not self.model_calls:
            return ""
        plain = self.exchanges - self.model_calls - self.tools
        counts = ((self.model_calls, model), (self.tools, "tool"), (plain, "HTTP"))
        return ", ".join(f"{count} {kind}" for count, kind in counts if count)

    @property
    def untaped(self) -> dict[str, int]:
        """The tools that ran without being on the tape, with the number of their calls."""
        return counted(self.untaped_calls)

    @property
    def cost(self) -> Decimal | None:
        """Cost of the run; None unless every answered model call has a known price."""
        return None if self.unpriced else self.spent

    @property
    def spending(self) -> list[str]:
        """The tokens and the cost in words, each as far as it is known.

        "1.2k → 64 tokens", and "$0.0143" or "$0.0143 for 5 of 6 model calls".
        """
        words = []
        if self.tokens is not None:
            asked, answered = map(figures.tokens, self.tokens)
            words.append(f"{asked} → {answered} tokens")
        if self.spent:  # What is free, or was given by a fork, is no word.
            priced = self.model_calls - self.unpriced
            part = f" for {priced} of {self.model_calls} model calls" if self.unpriced else ""
            words.append(figures.money(self.spent) + part)
        return words

    def document(self) -> dict[str, object]:
        """Return the account as JSON-able values."""
        asked, answered = self.tokens or (None, None)
        return {
            "exchanges": self.exchanges,
            "model_calls": self.model_calls,
            "models": list(self.models),
            "lanes": self.lanes,
            "bytes_on_wire": self.wire,
            "input_tokens": asked,
            "output_tokens": answered,
            "cost_usd": dollars(self.cost),
            "untaped": self.untaped,
        }


class Counting:
    """Adds up the totals of a tape. Give it each exchange in its order."""

    def __init__(self) -> None:
        self._exchanges = self._calls = self._wire = self._unpriced = self._tool_calls = 0
        self._models: dict[str, None] = {}
        self._lanes: set[str] = set()
        self._spent: Decimal | None = None
        self._tokens: tuple[int, int] | None = None
        self._tools = ToolCalls()

    def add(self, exchange: Exchange, call: ModelCall | None) -> Decimal | None:
        """Add an exchange, and what it is as a model call; return its price if that is known."""
        self._exchanges += 1
        self._lanes.add(exchange.lane)
        self._wire += sum(wire_sizes(exchange))
        self._tools.add(exchange, call)
        if call is None:
            self._tool_calls += is_tool(exchange)
            return None
        self._calls += 1
        self._models.setdefault(model_name(call))
        if call.usage is not None and not exchange.is_auxiliary:
            asked, answered = self._tokens or (0, 0)
            asked += call.usage.input_tokens or 0
            self._tokens = asked, answered + (call.usage.output_tokens or 0)
        price = price_of(exchange, call)
        if price is not None:
            self._spent = (self._spent or Decimal(0)) + price
        elif call.error is None:
            self._unpriced += 1  # A refused call (429, 500) is not charged.
        return price

    def copy(self) -> Counting:
        """Return a copy that goes on by itself."""
        twin = copy(self)
        for name in ("_models", "_lanes", "_tools"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    @property
    def account(self) -> Account:
        """The totals so far."""
        return Account(
            exchanges=self._exchanges,
            model_calls=self._calls,
            models=tuple(self._models),
            lanes=len(self._lanes),
            wire=self._wire,
            spent=self._spent,
            unpriced=self._unpriced,
            untaped_calls=tuple(self._tools.untaped),
            tokens=self._tokens,
            tools=self._tool_calls,
        )


def glance(tape: Tape) -> Account:
    """Return the totals of a tape without reading a long one to the end.

    Above 1,000 exchanges, only the first 100 are read and the cost is unknown.
    """
    exchanges = tape.exchanges
    if len(exchanges) <= SHORT:
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
    counting = Counting()
    for exchange in tape.exchanges:
        counting.add(exchange, model_call(exchange))
    return counting.account


def wire_sizes(exchange: Exchange) -> tuple[int, int]:
    """Return the bytes sent and received; 0 sent if the tape holds only hashes."""
    sent = len(exchange.request_body) if exchange.has_bodies else 0
    return sent, sum(exchange.aside.sizes)


def saved(tape: Tape) -> Account | None:
    """Return what a replay did not spend again; None of a long run whose prices are not known."""
    return take_account(tape) if len(tape.exchanges) <= SHORT or _is_priced(tape) else None


def known_cost(tape: Tape) -> Decimal | None:
    """Return the cost of the run; read no body if no price can be known."""
    return take_account(tape).cost if _is_priced(tape) else None


def _is_priced(tape: Tape) -> bool:
    hosts = {urlsplit(exchange.url).hostname or "" for exchange in tape.exchanges}
    return any(provider_of(host) for host in hosts)


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
