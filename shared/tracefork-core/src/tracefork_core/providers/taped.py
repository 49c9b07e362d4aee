"""What an exchange on a tape means."""

from __future__ import annotations

from tracefork_core.tape import Exchange

from .call import ModelCall
from .decode import decode


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
