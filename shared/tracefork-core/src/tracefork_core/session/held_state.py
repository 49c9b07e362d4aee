"""Refuse a live request of a fork that continues what its provider keeps, and the fork changed.

A response, or a conversation, is kept as the recording made it. The provider does not know the
answers that a fork gives, nor what a held answer would have been to another request. And a
conversation has everything that the recording added after the fork point, which nothing takes back.
An answer to such a request would be one that no run can get.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Head, Request
from tracefork_core.providers.decode import Request as Asked
from tracefork_core.providers.decode import decode
from tracefork_core.providers.held_state import continued_conversation, continued_response
from tracefork_core.session.interventions import Given
from tracefork_core.tape import Exchange


class HeldState:
    """What a fork has changed of what providers keep. `tail` is recorded behind the fork point."""

    def __init__(self, tail: Sequence[Exchange]) -> None:
        self._tail = tail
        self._changed: list[tuple[Request, Given, Exchange]] = []

    def change(self, request: Request, given: Given, place: Exchange) -> None:
        """Note that a request gets an answer that its provider never gave to it."""
        self._changed.append((request, given, place))

    def check(self, request: Request) -> None:
        """Raise if a request that is about to be sent continues something of this.

        Raises:
            UsageError: it does; the message says what to do instead.
        """
        where = f"{request.method} {request.url.partition('?')[0]}"
        response = continued_response(request)
        if response is not None and (place := self._changed_at(response)) is not None:
            raise UsageError(
                f"tracefork: the fork stopped before {where}, because it continues the response "
                f"to exchange {place.n} by its id, and the provider does not know what the fork "
                "changed there. Change the request instead (--prompt, --set), so that the provider "
                "answers it, or record the run without previous_response_id."
            )
        conversation = continued_conversation(request)
        if conversation is not None and (added := self._added_to(conversation)) is not None:
            raise UsageError(
                f"tracefork: the fork stopped before {where}, because the provider's conversation "
                f"{conversation} has what the recording added to it from exchange {added.n} on. "
                "Fork where the conversation is created, or record the run with a session of your "
                "own."
            )

    def _changed_at(self, response: str) -> Exchange | None:
        for request, given, place in self._changed:
            if (
                isinstance(given.head, Head)
                and _response_id(request, given, given.head) == response
            ):
                return place
        return None

    def _added_to(self, conversation: str) -> Exchange | None:
        return next((it for it in self._tail if _adds_to(it, conversation)), None)


def _response_id(request: Request, given: Given, head: Head) -> str | None:
    asked = (request.method, request.url, request.headers, request.body)
    call = decode(*asked, head.status, head.headers, b"".join(given.chunks))
    return call.response_id if call is not None else None


def _adds_to(exchange: Exchange, conversation: str) -> bool:
    if exchange.method == "GET":
        return False
    asked = Asked(exchange.method, exchange.url, exchange.request_headers, exchange.request_body)
    return continued_conversation(asked) == conversation
