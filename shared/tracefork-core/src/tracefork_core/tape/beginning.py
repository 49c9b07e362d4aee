"""The first exchanges of a tape, without reading the others, so that they can be shown at once.

`Tape.exchanges` reads and checks all events of a tape. Of 10,000 exchanges that takes a fifth of a
second; the first part of their log takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from tracefork_core.tape import schema
from tracefork_core.tape.blobs import BLOB, EMPTY, BlobReader, BlobRecord
from tracefork_core.tape.contents import Head
from tracefork_core.tape.event import (
    EXCHANGE,
    STEP,
    ExchangeAside,
    ExchangePayload,
    StepRecord,
    events,
    steps_down_to,
)
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.log import LogReader


class Beginning:
    """The bodies and steps in the first part of a log, for the exchanges in it."""

    def __init__(self, log: LogReader, keeps_bodies: bool) -> None:
        self.keeps_bodies = keeps_bodies
        self.exchanges: list[Exchange] = []
        self._blobs = BlobReader(log)
        self._steps: dict[str, StepRecord] = {}
        for segment, lines in log.segments():
            self._read(segment, lines)
            break
        self.exchanges.sort(key=lambda exchange: exchange.n)

    def _read(self, segment: int, lines: bytes) -> None:
        for event in events(lines):
            aside = bytes(event.aside)
            if event.kind == BLOB:
                self._blobs.add(segment, msgspec.json.decode(aside, type=BlobRecord))
            elif event.kind == STEP:
                step = msgspec.json.decode(aside, type=StepRecord)
                self._steps[step.id] = step
            elif event.kind == EXCHANGE:
                payload = msgspec.json.decode(bytes(event.payload), type=ExchangePayload)
                beside = msgspec.json.decode(aside, type=ExchangeAside)
                exchange = Exchange(self, payload, beside, bytes(event.payload), aside)
                self.exchanges.append(exchange)

    def blob(self, sha: str) -> bytes:
        """Return the body at an address, verified."""
        return b"" if sha == EMPTY else self._blobs.get(sha)

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to this one."""
        return steps_down_to(step, self._steps)


@contextmanager
def first_exchanges(path: Path) -> Iterator[list[Exchange]]:
    """Yield the first exchanges of a closed run, in the order asked, as far as none is missing.

    None is yielded of a branch, a sealed tape, or one that is not closed: they need other files, a
    key, or all of the log. What is yielded is not checked as `Tape.exchanges` checks it.

    Raises:
        TapeError: the file is not a tape, or is corrupt.
        msgspec.MsgspecError: an event is corrupt.
    """
    with closing(schema.open_readonly(path)) as db:
        head = Head(path, db)
        if not head.complete or head.origin is not None or head.mode == "sealed":
            yield []
            return
        found = Beginning(LogReader(db), head.mode != "metadata").exchanges
        yield [exchange for n, exchange in enumerate(found) if exchange.n == n]
