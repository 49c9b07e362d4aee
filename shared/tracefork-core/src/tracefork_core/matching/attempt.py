"""A request on its way through a session, with all that is known about it.

A session makes one `Attempt` for each request and hands it down. Its kind, its lane and its two
comparable forms are each worked out once, however many parts of the session ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.current import running_checkpoint
from tracefork_core.exchange.kind import Kind
from tracefork_core.masking.masking import Masking
from tracefork_core.matching.comparable import Form, form
from tracefork_core.tape import Exchange
from tracefork_core.tape.digest import canonical


class Attempt:
    """One request under way.

    Args:
        request: what the agent asks.
        kind: see `exchange.kind`.
        lane: the name of its lane, and the name counted from the beginning of its step.
        masking: what is masked in the form that goes onto a tape.
        matchers: the named matchers that widen what counts as equal.
    """

    def __init__(
        self,
        request: Request,
        kind: Kind,
        lane: tuple[str, str],
        masking: Masking,
        matchers: Sequence[str] = (),
    ) -> None:
        self.request = request
        self.is_auxiliary = kind in ("auxiliary", "report")
        self.is_report = kind == "report"
        self.lane, self.in_step = lane
        self._masking = masking
        self._matchers = matchers

    @cached_property
    def plain(self) -> Form:
        """The request as it was asked, in comparable form."""
        return form(self.request)

    @cached_property
    def masked(self) -> Form:
        """The same with secrets masked, as a tape holds it; `plain` itself where there are none."""
        masked = self._masking.request(self.request)
        return self.plain if masked is self.request else form(masked)

    @cached_property
    def plain_key(self) -> bytes:
        """What `plain` shares with every request that the matchers count as equal."""
        return self.plain.with_matchers(self._matchers).key

    @cached_property
    def masked_key(self) -> bytes:
        """What `masked` shares with every request that the matchers count as equal."""
        if self.masked is self.plain:
            return self.plain_key
        return self.masked.with_matchers(self._matchers).key

    @cached_property
    def checkpoint(self) -> tuple[str, str] | None:
        """The thread and the id of the checkpoint that the agent's framework runs from."""
        return running_checkpoint()

    def equals(self, exchange: Exchange) -> bool:
        """Return whether a recorded exchange asked the same."""
        return recorded_key(exchange, self._matchers) in (self.masked_key, self.plain_key)


def recorded_key(exchange: Exchange, matchers: Sequence[str]) -> bytes:
    """Return the key of the request of a recorded exchange."""
    if not matchers:
        return canonical(exchange.request)
    request = Request(
        exchange.method,
        exchange.url,
        tuple(exchange.request_headers),
        exchange.request_body,
        exchange.aside.seam,
    )
    return form(request).with_matchers(matchers).key
