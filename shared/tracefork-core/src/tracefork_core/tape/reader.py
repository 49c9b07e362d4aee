"""Read a tape: its exchanges, steps, draws and receipt."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import schema
from tracefork_core.tape.blobs import EMPTY, Blobs
from tracefork_core.tape.canonical import canonical, sha256
from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import (
    DRAWS,
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    STEP,
    STEP_END,
    Draws,
    Environment,
    ExchangeAside,
    ExchangePayload,
    Reads,
    Receipt,
    StepEnd,
    StepRecord,
)
from tracefork_core.tape.exchange import Exchange

T = TypeVar("T")

_payload = msgspec.json.Decoder(ExchangePayload).decode
_aside = msgspec.json.Decoder(ExchangeAside).decode


class Tape:
    """An open tape, read-only. A context manager.

    Attributes:
        path: where it lies.
        complete: whether the recording was closed; a tape cut off by a crash is not.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self._lock = threading.Lock()
        self._blobs = Blobs(db)
        self.complete = self._meta("state") == "complete"

    @classmethod
    def open(cls, path: str | Path) -> Tape:
        """Open a tape.

        Raises:
            UsageError: there is no such file.
            TapeError: the file is not a tape, or is damaged.
        """
        path = Path(path)
        db = schema.open_readonly(path)
        try:
            return cls(path, db)
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Close the file, once no thread is reading it: SQLite does not survive the contrary."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """The exchanges in the order asked, with those that were in flight at a crash."""
        found = [
            Exchange(self, self._read(_payload, payload), self._read(_aside, aside), payload)
            for payload, aside in self._events(EXCHANGE)
        ]
        found.extend(self._in_flight())
        found.sort(key=lambda exchange: exchange.n)
        for place, exchange in enumerate(found):
            self._check(place, exchange)
        return found

    @cached_property
    def steps(self) -> list[StepRecord]:
        """The steps in the order they began."""
        ends: dict[str, StepEnd] = {}
        for _, aside in self._events(STEP_END):
            end = self._read(msgspec.json.Decoder(StepEnd).decode, aside)
            ends[end.id] = end
        steps = []
        for _, aside in self._events(STEP):
            step = self._read(msgspec.json.Decoder(StepRecord).decode, aside)
            if ended := ends.get(step.id):
                step = msgspec.structs.replace(step, ended=ended.ended, error=ended.error)
            steps.append(step)
        return steps

    @property
    def draws(self) -> list[Reads]:
        """What was drawn, in the order it was written."""
        decode = msgspec.json.Decoder(Draws).decode
        draws = (self._read(decode, aside) for _, aside in self._events(DRAWS))
        return [reads for drawn in draws for reads in drawn.reads]

    @property
    def environment(self) -> Environment | None:
        """Where the recording was made."""
        return self._last(ENVIRONMENT, msgspec.json.Decoder(Environment).decode)

    @property
    def receipt(self) -> Receipt | None:
        """What the recording says about itself; None while it is incomplete."""
        return self._last(RECEIPT, msgspec.json.Decoder(Receipt).decode)

    @cached_property
    def digest(self) -> str:
        """The digest of the run, computed from what the file holds (not read from its receipt)."""
        return chain(exchange.canonical for exchange in self.exchanges)

    def blob(self, sha: str) -> bytes:
        """Return the bytes at an address, verified."""
        if sha == EMPTY:
            return b""
        with self._lock:
            return self._blobs.get(sha)

    def step_path(self, step: str | None) -> tuple[str, ...]:
        """Return the names from the root down to a step, for people."""
        names: list[str] = []
        while step is not None and (record := self._steps_by_id.get(step)) and len(names) < 64:
            names.append(record.name)
            step = record.parent
        return tuple(reversed(names))

    @cached_property
    def _steps_by_id(self) -> dict[str, StepRecord]:
        return {step.id: step for step in self.steps}

    def _in_flight(self) -> Iterator[Exchange]:
        """Yield what a crash cut off, with the chunks that the agent had seen."""
        for n, payload_json, aside_json in self._rows("SELECT n, payload, aside FROM flights"):
            payload = self._read(_payload, payload_json)
            aside = self._read(_aside, aside_json)
            query = "SELECT turn, data FROM flight_chunks WHERE n = ? ORDER BY turn"
            rows = self._rows(query, (n,))
            chunks = [data for _, data in rows]
            aside.sizes = [len(chunk) for chunk in chunks]
            aside.turns.extend([turn, 1] for turn, _ in rows)
            if payload.response is not None:
                response = msgspec.structs.replace(payload.response, body=sha256(b"".join(chunks)))
                payload = msgspec.structs.replace(payload, response=response)
            yield Exchange(self, payload, aside, canonical(payload), chunks)

    def _check(self, place: int, exchange: Exchange) -> None:
        """Refuse what no writer writes, before a replay counts on it."""
        turns = exchange.aside.turns
        deliveries = len(exchange.aside.sizes) + 2  # a head, chunks, an end
        if exchange.n != place:
            raise TapeError(f"tracefork: {self.path} has no exchange {place}: the tape is damaged.")
        if any(len(run) != 2 or min(run) < 0 for run in turns) or (
            sum(count for _, count in turns) > deliveries
        ):
            raise TapeError(f"tracefork: {self.path}: exchange {place} has impossible turns.")

    def _events(self, kind: str) -> list[tuple[bytes, bytes]]:
        return self._rows("SELECT payload, aside FROM events WHERE kind = ? ORDER BY seq", (kind,))

    def _last(self, kind: str, decode: Callable[[bytes], T]) -> T | None:
        events = self._events(kind)
        return self._read(decode, events[-1][1]) if events else None

    def _read(self, decode: Callable[[bytes], T], data: bytes) -> T:
        try:
            return decode(data)
        except (msgspec.MsgspecError, TypeError, RecursionError) as error:
            raise TapeError(f"tracefork: {self.path} holds a damaged event: {error}.") from error

    def _rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._db.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise TapeError(f"tracefork: cannot read {self.path}: {error}.") from error

    def _meta(self, key: str) -> str | None:
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None
