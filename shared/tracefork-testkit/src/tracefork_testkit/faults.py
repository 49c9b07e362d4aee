"""Turn an outcome of a script into a delivery, complete or broken on purpose."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from tracefork_testkit.conversation import ModelRequest
from tracefork_testkit.dialect import Dialect, Headers, estimate
from tracefork_testkit.directives import sentence
from tracefork_testkit.http1 import Delivery, json_delivery
from tracefork_testkit.script import Fault, Reply
from tracefork_testkit.stamp import Stamp

JSON_PIECE = 64


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a delivery needs besides the outcome."""

    dialect: Dialect
    request: ModelRequest
    stamp: Stamp
    date: str
    chunk_delay: float = 0.0
    jitter: bool = False
    compress: bool = False
    cut_anywhere: bool = False

    def deliver(self, outcome: Reply | Fault) -> Delivery:
        """Return the delivery of a reply or a fault."""
        delivery = self._reply(outcome) if isinstance(outcome, Reply) else self._fault(outcome)
        if self.cut_anywhere and delivery.chunked:
            delivery.chunks = _cut_anywhere(delivery.chunks, self.stamp)
        return delivery

    def refusal(self, status: int, message: str) -> Delivery:
        """Return an error that no SDK retries: the script is wrong, not the network."""
        return self._error(status, message, [("x-should-retry", "false")])

    def _reply(self, reply: Reply) -> Delivery:
        if self.jitter:
            reply = self._jittered(reply)
        usage = reply.usage or estimate(self.request, reply)
        headers = [*self._headers(), *reply.headers.items()]
        wait = self.chunk_delay if reply.chunk_delay is None else reply.chunk_delay
        if self.request.stream:
            kind = ("content-type", self.dialect.stream_type)
            events = self.dialect.events(self.request, reply, usage, self.stamp)
            delivery = Delivery(200, [kind, *headers], events, chunked=True, chunk_delay=wait)
            delivery.delay, delivery.hold = reply.delay, reply.hold
            return delivery
        delivery = json_delivery(
            200, self.dialect.body(self.request, reply, usage, self.stamp), headers
        )
        if self.compress:
            delivery.chunks = [gzip.compress(b"".join(delivery.chunks), mtime=0)]
            delivery.headers.append(("content-encoding", "gzip"))
        delivery.delay, delivery.hold = reply.delay, reply.hold
        return delivery

    def _jittered(self, reply: Reply) -> Reply:
        usage = reply.usage or estimate(self.request, reply)
        extra = self.stamp.below(7, "usage")
        text = f"{reply.text} {sentence(self.stamp.seed, 4)}" if reply.text else ""
        return replace(
            reply, text=text, usage=replace(usage, output_tokens=usage.output_tokens + extra)
        )

    def _fault(self, fault: Fault) -> Delivery:
        in_stream = fault.kind == "stream_error" and self.request.stream
        if fault.kind == "status" or (fault.kind == "stream_error" and not in_stream):
            message = fault.message or f"scripted fault: status {fault.status}"
            delivery = self._error(fault.status, message, list(fault.headers.items()))
            return replace(delivery, delay=fault.delay)
        delivery = self._reply(fault.reply or Reply(text="This answer breaks off on purpose."))
        delivery = replace(delivery, delay=fault.delay or delivery.delay)
        if fault.kind == "timeout":
            return replace(delivery, ending="silence")
        if not delivery.chunked:
            delivery.chunks = _pieces(b"".join(delivery.chunks))
        if fault.kind == "malformed":
            return self._malformed(delivery)
        if fault.kind == "stream_error":
            message = fault.message or "scripted fault: overloaded"
            event = self.dialect.error_event(message, self.stamp)
            return replace(delivery, chunks=_cut(delivery.chunks, fault.after_chunks or 0, event))
        if fault.kind == "misframed":
            return replace(delivery, chunked=True, ending="misframed", sent=fault.after_chunks or 0)
        sent = fault.after_chunks
        if fault.kind == "truncate" and sent is None:
            sent = 1
        return replace(delivery, ending=fault.kind, sent=sent)

    def _malformed(self, delivery: Delivery) -> Delivery:
        if delivery.chunked:
            return replace(delivery, chunks=[b'data: {"id":"broken","cho\n\n'])
        return replace(delivery, chunks=[b'{"id":"broken","cho'])

    def _error(self, status: int, message: str, headers: Headers) -> Delivery:
        body = self.dialect.error(status, message, self.stamp)
        return json_delivery(status, body, [*self._headers(), *headers])

    def _headers(self) -> Headers:
        return [("date", self.date), *self.dialect.headers(self.stamp)]


def _pieces(body: bytes) -> list[bytes]:
    return [body[start : start + JSON_PIECE] for start in range(0, len(body), JSON_PIECE)]


def _cut(chunks: Iterable[bytes], count: int, last: bytes) -> Iterator[bytes]:
    yield from islice(chunks, count)
    yield last


def _cut_anywhere(chunks: Iterable[bytes], stamp: Stamp) -> Iterator[bytes]:
    """Yield the same bytes in chunks that begin and end in the middle of events."""
    held = b""
    for number, chunk in enumerate(chunks):
        held += chunk
        cut = stamp.below(len(held) + 1, f"cut{number}")
        if held[:cut]:
            yield held[:cut]
        held = held[cut:]
    if held:
        yield held
