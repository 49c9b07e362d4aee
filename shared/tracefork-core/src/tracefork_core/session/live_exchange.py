"""One exchange that happens for real and goes onto the tape, piece by piece."""

from __future__ import annotations

import hashlib
import threading
from typing import ClassVar, Literal

import msgspec

from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.contract import Failure, Head, Request
from tracefork_core.inputs.side_effects import Watch
from tracefork_core.masking.body import MaskedBody
from tracefork_core.matching.attempt import Attempt
from tracefork_core.session.tape_sink import Sink
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    FailureRecord,
    ResponseRecord,
)

CLOCK_HEADERS = frozenset({"date"})
"""Response headers whose value is a clock reading: kept beside the digest, not under it."""
_TOOL = "tool"
"""The seam of tools."""
_NO_BODY = frozenset({204, 304})


class LiveExchange:
    """The recording side of one exchange. Every piece is on the tape before the agent sees it.

    Args:
        sink: the tape that it is written to.
        n: its number.
        attempt: the request that begins it.
        answered, place: see `ExchangeAside`.
        sends: what is sent instead of the agent's request; None sends that.
    """

    is_live: ClassVar[Literal[True]] = True

    def __init__(
        self,
        sink: Sink,
        n: int,
        attempt: Attempt,
        *,
        answered: str = "",
        place: int | None = None,
        sends: Request | None = None,
    ) -> None:
        sink.prepare()
        where = caller(4)  # Nearer frames are this one, the session's and the seam's.
        self._sink = sink
        self._n = n
        self.sends = sends
        self._form = form = attempt.masked
        lane, in_step, request = attempt.lane, attempt.in_step, attempt.request
        self._aside = aside = ExchangeAside(
            lane=lane,
            in_step=in_step if in_step != lane else None,
            seam=request.seam,
            effect=request.effect,
            started=sink.wall_ns(),
            answered=answered,
            place=place,
            step=sink.running_step(),
            checkpoint=attempt.checkpoint,
            caller=sink.masking.text(where) if where else None,
            url=form.url if form.url != form.record.url else None,
            sent=form.sent,
            auxiliary=attempt.is_auxiliary,
        )
        if sink.masking.is_unsearched(form.headers, form.body):
            self._note_unsearched("request")
        self._began = self._delivered = aside.started
        self._pace: list[int] = []
        self._response: ResponseRecord | None = None
        self._pieces: list[bytes] = []
        self._masked: MaskedBody | None = None
        self._missing: int | None = None
        self._head_is_written = False
        self._put_off_as: str | None = None
        self._ended = False
        self._has_passed = False
        # The end of the session may come from another thread than the pieces.
        self._lock = threading.Lock()
        sink.write(lambda tape: tape.begin(self._payload(), aside, form.body))
        sink.in_flight[n] = self.settle
        self._watch = Watch(sink.masking.text) if request.seam == _TOOL and not answered else None
        if self._watch is not None:
            self._watch.begin()

    async def quiet(self) -> None:
        if not self._ended:
            await self._sink.gate.apass_on(self)
            self._has_passed = True

    def _pass_gate(self) -> None:
        """Wait for a place among the deliveries. An exchange that has ended delivers nothing."""
        if not (self._ended or self._has_passed):
            self._sink.gate.pass_on(self)
        self._has_passed = False

    def head(self, head: Head) -> None:
        self._pass_gate()
        with self._lock:
            if self._ended:
                return
            aside = self._aside
            self._turn()
            aside.first_byte = self._sink.wall_ns() - self._began
            aside.http_version = head.http_version
            masking = self._sink.masking
            self._masked = masking.body(head)
            self._missing = self._declared_length(head)
            head = masking.head(head)
            headers = [self._header(name, value) for name, value in head.headers]
            self._response = ResponseRecord(head.status, head.reason, headers, body="")
            if self._missing is None:
                self._write_head()

    def chunk(self, data: bytes) -> None:
        self._pass_gate()
        with self._lock:
            if self._ended:
                return
            is_last = self._is_last(data)
            if not is_last:
                self._write_head()
            turn = self._turn()
            self._pieces.append(data)
            self._aside.sizes.append(len(data))
            shown = self._masked.feed(data, last=is_last) if self._masked else data
            if is_last:
                self._finish("eof")
            else:
                self._sink.write(lambda tape: tape.chunk(self._n, turn, shown))

    def end(self) -> None:
        self._pass_gate()
        with self._lock:
            if not self._ended:
                self._turn()
                self._finish("eof")

    def complete(self) -> None:
        self._put_off("eof")

    def abandon(self) -> None:
        self._put_off("abandoned")

    def fail(self, failure: Failure) -> None:
        self._pass_gate()
        with self._lock:
            if not self._ended:
                self._turn()
                message = failure.message.encode("utf-8", "backslashreplace").decode()
                message = self._sink.masking.text(message)
                self._finish("failed", FailureRecord(failure.kind, message))

    def cancel(self, rounds: int = 0) -> None:
        if self._put_off_as is None:
            self._aside.rounds = rounds
        self._put_off("cancelled")

    def settle(self) -> None:
        """Write the end that was put off, or that the session ended first."""
        with self._lock:
            self._finish(self._put_off_as or "open")

    def _put_off(self, end: str) -> None:
        """Leave the end to be written when the session is used next.

        The garbage collector may close a stream in the middle of anything that this thread does,
        for instance a commit to the tape.
        """
        if self._put_off_as is None and not self._ended:
            self._put_off_as = end
            self._sink.put_off.append(self.settle)

    def _finish(self, end: str, failure: FailureRecord | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        self._mask(whole=end == "eof")
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._aside.end = end
        if self._watch is not None:
            self._aside.side_effects = self._watch.end()
        self._aside.took = self._sink.wall_ns() - self._began
        self._aside.pace = self._pace if len(self._aside.sizes) > 1 else []
        payload = self._payload(hashlib.sha256(body).hexdigest(), failure)
        self._sink.write(lambda tape: tape.end(payload, self._aside, body))
        self._sink.in_flight.pop(self._n, None)
        if not self._aside.answered:
            self._sink.ended.append((self._aside.took, len(body)))

    def _mask(self, *, whole: bool) -> None:
        """Replace the received body by its masked form, and make the headers agree with it."""
        masked = self._masked.finish(self._pieces, whole=whole) if self._masked else None
        if self._masked is not None and self._masked.unsearched and any(self._pieces):
            self._note_unsearched("response")
        if masked is None or self._response is None:
            return
        received = b"".join(self._pieces)
        self._sink.masking.count(masked.matches)
        self._pieces = masked.pieces
        self._aside.sizes = [len(piece) for piece in masked.pieces]
        headers = masked.agreeing(self._response.headers, received, whole=whole)
        self._response = msgspec.structs.replace(self._response, headers=headers)

    def _note_unsearched(self, body: str) -> None:
        if self._sink.masking.mode != "metadata":  # which stores no body
            self._aside.unsearched.append(body)
            self._sink.masking.count_unsearched()

    def _write_head(self) -> None:
        if not self._head_is_written:
            self._head_is_written = True
            self._sink.write(lambda tape: tape.head(self._payload(), self._aside))

    def _header(self, name: str, value: str) -> tuple[str, str | None]:
        lower = name.lower()
        if lower in CLOCK_HEADERS:
            self._aside.received[lower] = value
            return name, None
        return name, value

    def _payload(self, body: str = "", failure: FailureRecord | None = None) -> ExchangePayload:
        response = self._response
        if response is not None:
            response = ResponseRecord(response.status, response.reason, response.headers, body)
        return ExchangePayload(self._n, self._form.record, response, failure)

    def _turn(self) -> int:
        """Take the next turn: the place of this delivery among all deliveries of the run."""
        before, self._delivered = self._delivered, self._sink.wall_ns()
        self._pace.append(round((self._delivered - before) / 1e6))
        turn = self._sink.next_turn()
        turns = self._aside.turns
        if turns and sum(turns[-1]) == turn:
            turns[-1][1] += 1
        else:
            turns.append([turn, 1])
        return turn

    def _is_last(self, data: bytes) -> bool:
        """Return whether a body of declared length ends here, before the agent sees its end."""
        if self._missing is None:
            return False
        self._missing -= len(data)
        return self._missing <= 0

    def _declared_length(self, head: Head) -> int | None:
        """Return the declared length of the body, None where a coding may change it."""
        if self._form.record.method == "HEAD" or head.status in _NO_BODY:
            return None
        length = None
        for name, value in head.headers:
            match name.lower():
                case "content-length" if value.isascii() and value.isdigit():
                    length = int(value)
                case "content-encoding" | "transfer-encoding":
                    return None
        return length or None
