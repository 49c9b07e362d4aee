"""The exchanges that were in flight when a recording was cut off, as its journal holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape.canonical import canonical, sha256
from tracefork_core.tape.event import ExchangeAside, ExchangePayload, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.journal import Flight


class Landed(Protocol):
    """The tape beside a journal."""

    @property
    def keeps_bodies(self) -> bool: ...

    def blob(self, sha: str) -> bytes: ...

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]: ...


def exchanges(
    tape: Landed, flights: Iterable[Flight], landed: Collection[int]
) -> Iterator[Exchange]:
    """Yield what of a journal is on no tape yet, with the chunks that the agent had seen.

    Raises:
        msgspec.MsgspecError: the journal holds something else.
    """
    for flight in flights:
        if flight.n in landed:
            continue
        payload = msgspec.json.decode(flight.payload, type=ExchangePayload)
        aside = msgspec.json.decode(flight.aside, type=ExchangeAside)
        chunks = [data for _, data in flight.chunks]
        aside.sizes = [len(chunk) for chunk in chunks]
        aside.turns.extend([turn, 1] for turn, _ in flight.chunks)
        if payload.response is not None:
            response = msgspec.structs.replace(payload.response, body=sha256(b"".join(chunks)))
            payload = msgspec.structs.replace(payload, response=response)
        bodies = InFlight(tape, payload.request.body, flight.body)
        yield Exchange(bodies, payload, aside, canonical(payload), canonical(aside), chunks)


class InFlight:
    """Where the bodies of such an exchange lie: that of its request is in the journal."""

    def __init__(self, tape: Landed, sha: str, body: bytes) -> None:
        self._tape = tape
        self._sha = sha
        self._body = body
        self.keeps_bodies = tape.keeps_bodies

    def blob(self, sha: str) -> bytes:
        """Return the bytes at an address, verified."""
        if sha != self._sha:
            return self._tape.blob(sha)
        if sha256(self._body) != sha:
            raise TapeError(f"tracefork: body {sha[:12]} was changed since it was recorded.")
        return self._body

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to one."""
        return self._tape.steps_down_to(step)
