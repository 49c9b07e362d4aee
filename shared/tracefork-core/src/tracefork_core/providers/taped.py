"""What an exchange on a tape means."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.decode import decode
from tracefork_core.providers.prices import cost
from tracefork_core.tape import Exchange


def model_call(exchange: Exchange) -> ModelCall | None:
    """Return what an exchange means as a model call, or None where that is not known."""
    if not exchange.has_bodies:
        return None
    return decode(
        exchange.method,
        exchange.url,
        exchange.request_headers,
        exchange.request_body,
        exchange.status,
        exchange.response_headers,
        exchange.response_body,
    )


def price_of(exchange: Exchange, call: ModelCall) -> Decimal | None:
    """Return what a call cost by the prices of its day, or None where that is not known.

    What a fork answered itself cost nothing, and counting tokens does not.
    """
    if exchange.aside.answered or exchange.is_auxiliary:
        return Decimal(0)
    return cost(call, datetime.fromtimestamp(exchange.aside.started / 1e9, UTC))
