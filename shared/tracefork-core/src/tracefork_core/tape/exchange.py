"""One recorded exchange. Its bodies are read from the tape when they are used."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Protocol

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape.digest import canonical
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    FailureRecord,
    RequestRecord,
    StepRecord,
)


class Bodies(Protocol):
    """A tape, as far as its exchanges need it."""

    @property
    def keeps_bodies(self) -> bool: ...

    def blob(self, sha: str) -> bytes:
        """Return the body at an address, verified."""

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to this one."""


class Exchange:
    """One recorded exchange. `n` counts from 0 in the order asked."""

    __slots__ = ("_chunks", "_tape", "aside", "beside", "canonical", "n", "payload")

    def __init__(
        self,
        tape: Bodies,
        payload: ExchangePayload,
        aside: ExchangeAside,
        canonical: bytes,
        beside: bytes = b"{}",
        chunks: list[bytes] | None = None,
    ) -> None:
        self._tape = tape
        self._chunks = chunks
        self.n = payload.n
        self.payload = payload
        self.aside = aside
        self.canonical = canonical
        """The payload as the digest covers it."""
        self.beside = beside
        """The aside as it lies on the tape, with unknown fields too."""

    def __repr__(self) -> str:
        return f"<Exchange {self.n}: {self.method} {self.url}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the request and the response."""
        from tracefork_core.tape.notebook import of_exchange

        return of_exchange(self)

    def in_turns(self, turns: list[list[int]]) -> Exchange:
        """Return this exchange with other turns of its deliveries."""
        aside = msgspec.structs.replace(self.aside, turns=turns)
        beside = msgspec.json.decode(self.beside) | {"turns": turns}
        return Exchange(
            self._tape, self.payload, aside, self.canonical, canonical(beside), self._chunks
        )

    @property
    def has_bodies(self) -> bool:
        """Whether the tape stores bodies, and not only their hashes."""
        return self._tape.keeps_bodies

    @property
    def request(self) -> RequestRecord:
        """The request as replay compares it."""
        return self.payload.request

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.payload.request.method

    @property
    def url(self) -> str:
        """The URL that was asked, without secrets."""
        return self.aside.url or self.payload.request.url

    @property
    def lane(self) -> str:
        """The lane that sent the request."""
        return self.aside.lane

    @property
    def step(self) -> str | None:
        """The id of the step that sent the request."""
        return self.aside.step

    @property
    def steps(self) -> tuple[StepRecord, ...]:
        """The steps that sent the request, from the root down, on the tape that recorded it."""
        return self._tape.steps_down_to(self.step)

    @property
    def step_path(self) -> tuple[str, ...]:
        """The names of `steps`."""
        return tuple(step.name for step in self.steps)

    @property
    def in_step(self) -> str:
        """The lane, counted from the start of its step, for runs that begin in the middle."""
        return self.aside.in_step or self.aside.lane

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        """The thread and the id of the checkpoint that the framework ran from."""
        return self.aside.checkpoint

    @property
    def is_auxiliary(self) -> bool:
        """Whether a replay may skip it: a token count, or a report to a collector."""
        return self.aside.auxiliary

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """The compared headers, then the others. Credentials are never recorded."""
        return [*self.payload.request.headers, *self.aside.sent]

    @property
    def request_body(self) -> bytes:
        """The body of the request, with a fixed word as its multipart boundary."""
        return self._tape.blob(self.payload.request.body)

    @property
    def status(self) -> int | None:
        """The status of the response; None if no response arrived."""
        return self.payload.response.status if self.payload.response else None

    @property
    def reason(self) -> str:
        """The reason phrase of the response."""
        return self.payload.response.reason if self.payload.response else ""

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """The headers of the response in wire order."""
        response, received = self.payload.response, self.aside.received
        if response is None:
            return []
        return [
            (name, received.get(name.lower(), "") if value is None else value)
            for name, value in response.headers
        ]

    @property
    def response_body(self) -> bytes:
        """The body of the response as far as it was read, still encoded."""
        if self._chunks is not None:
            return b"".join(self._chunks)
        return self._tape.blob(self.payload.response.body) if self.payload.response else b""

    @property
    def chunks(self) -> list[bytes]:
        """The body of the response in the pieces in which it arrived."""
        if self._chunks is not None:
            return self._chunks
        body = self.response_body
        sizes = self.aside.sizes
        if len(sizes) == 1 and sizes[0] == len(body):
            return [body]
        edges = list(accumulate(sizes, initial=0))
        if edges[-1] != len(body) or min(sizes, default=0) < 0:
            raise TapeError(
                f"tracefork: exchange {self.n} is corrupt: its chunks come to {edges[-1]} bytes, "
                f"its body has {len(body)}."
            )
        return [body[start:stop] for start, stop in pairwise(edges)]

    @property
    def failure(self) -> FailureRecord | None:
        """The exception that ended the attempt, if any."""
        return self.payload.failure

    @property
    def end(self) -> str:
        """How it ended: eof, abandoned, failed, cancelled, or open (still in flight)."""
        return self.aside.end
