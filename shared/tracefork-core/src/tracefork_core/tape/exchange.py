"""One exchange as a tape holds it. Bodies are read when asked for."""

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
    """Where the bodies of a tape's exchanges lie, if it keeps them."""

    @property
    def keeps_bodies(self) -> bool: ...

    def blob(self, sha: str) -> bytes:
        """Return the bytes at an address, verified."""

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to one."""


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
        """The aside as it lies on the tape, with fields that are not known here."""

    def in_turns(self, turns: list[list[int]]) -> Exchange:
        """Return the same exchange, delivered in other turns."""
        aside = msgspec.structs.replace(self.aside, turns=turns)
        beside = msgspec.json.decode(self.beside) | {"turns": turns}
        return Exchange(
            self._tape, self.payload, aside, self.canonical, canonical(beside), self._chunks
        )

    @property
    def has_bodies(self) -> bool:
        """Whether the tape keeps bodies, and not only their hashes."""
        return self._tape.keeps_bodies

    @property
    def request(self) -> RequestRecord:
        """The request as it is compared."""
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
        """The lane that asked."""
        return self.aside.lane

    @property
    def step(self) -> str | None:
        """The id of the step that asked."""
        return self.aside.step

    @property
    def steps(self) -> tuple[StepRecord, ...]:
        """The steps that asked, from the root down; on a branch, those of the run it is from."""
        return self._tape.steps_down_to(self.step)

    @property
    def step_path(self) -> tuple[str, ...]:
        """The names of these steps, for people."""
        return tuple(step.name for step in self.steps)

    @property
    def in_step(self) -> str:
        """The lane, counted from the beginning of the step: for a run that begins in the middle."""
        return self.aside.in_step or self.aside.lane

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        """The thread and the id of the checkpoint that the agent's framework ran from."""
        return self.aside.checkpoint

    @property
    def is_auxiliary(self) -> bool:
        """Whether a replay may do without it: a token count, or a report to a collector."""
        return self.aside.auxiliary

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """The compared headers, then those that are not compared; credentials never land."""
        return [*self.payload.request.headers, *self.aside.sent]

    @property
    def request_body(self) -> bytes:
        """The body that was sent (a random multipart boundary in it became a fixed word)."""
        return self._tape.blob(self.payload.request.body)

    @property
    def status(self) -> int | None:
        """The status of the response, or None where none came."""
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
        """The body of the response as far as it was read, not decoded."""
        if self._chunks is not None:
            return b"".join(self._chunks)
        return self._tape.blob(self.payload.response.body) if self.payload.response else b""

    @property
    def chunks(self) -> list[bytes]:
        """The body of the response in the pieces it came in."""
        if self._chunks is not None:
            return self._chunks
        body = self.response_body
        sizes = self.aside.sizes
        if len(sizes) == 1 and sizes[0] == len(body):
            return [body]
        edges = list(accumulate(sizes, initial=0))
        if edges[-1] != len(body) or min(sizes, default=0) < 0:
            raise TapeError(f"tracefork: exchange {self.n} has chunks that do not make its body.")
        return [body[start:stop] for start, stop in pairwise(edges)]

    @property
    def failure(self) -> FailureRecord | None:
        """The exception that ended the attempt, if one did."""
        return self.payload.failure

    @property
    def end(self) -> str:
        """How it ended: eof, abandoned, failed, cancelled, or open (cut off in flight)."""
        return self.aside.end
