"""Read a tape: its exchanges, steps, draws and receipt."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import in_flight, origin, schema
from tracefork_core.tape.blobs import BLOB, EMPTY, BlobReader, BlobRecord
from tracefork_core.tape.checkpoint import EVENTS, CheckpointEvent
from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import (
    BRANCH,
    DRAWS,
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    STEP,
    STEP_END,
    SURROUNDINGS,
    Branch,
    Draws,
    Environment,
    Event,
    ExchangeAside,
    ExchangePayload,
    Reads,
    Receipt,
    Seen,
    StepEnd,
    StepRecord,
    Structure,
    Surroundings,
    events,
)
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.log import Cipher, LogReader
from tracefork_core.tape.mode import Mode, as_mode
from tracefork_core.tape.older import upgraded
from tracefork_core.tape.sealing import Key, holder, unwrap

T = TypeVar("T")

_payload = msgspec.json.Decoder(ExchangePayload).decode
_aside = msgspec.json.Decoder(ExchangeAside).decode
_structure = msgspec.json.Decoder(Structure).decode
_blob = msgspec.json.Decoder(BlobRecord).decode
_DAMAGED = (msgspec.MsgspecError, MemoryError, RecursionError, TypeError, ValueError)
"""What decoding anything but a document raises: text that is no UTF-8 is a ValueError.

A MemoryError is what SQLite says of a damaged row that declares more than any memory holds.
"""


class Tape:
    """An open tape, read-only. A context manager.

    Attributes:
        path: where it lies.
        complete: whether the recording was closed; a tape cut off by a crash is not.
        mode: what it keeps; see `mode.Mode`.
        origin: the tape that it is a branch of, if it is one.
        key: what opens it, where it is sealed and this environment has that.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self._lock = threading.RLock()
        self.complete = self._meta("state") == "complete"
        self.mode = self._find_mode()
        self.origin = origin.read(self._meta("origin"), path.name)
        self.key = self._find_key()
        self._log = LogReader(db, self._cipher)
        self._blobs = BlobReader(self._log, self._of_parent if self.origin else None)

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
            db = upgraded(db)
            return cls(path, db)
        except (sqlite3.Error, *_DAMAGED) as error:
            db.close()
            raise TapeError(f"tracefork: {path} is damaged: {_words(error)}.") from error
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Close the file, once no thread is reading it: SQLite does not survive the contrary."""
        with self._lock:
            self._db.close()
            if (parent := self.__dict__.get("_parent")) is not None:
                parent.close()

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
            Exchange(self, self._read(_payload, payload), self._read(_aside, aside), payload, aside)
            for payload, aside in self._events(EXCHANGE)
        ]
        if not self.complete:
            landed = {exchange.n for exchange in found}
            try:
                found.extend(in_flight.exchanges(self, self._cipher, landed))
            except _DAMAGED as error:
                raise self._damaged(error) from error
        found.sort(key=lambda exchange: exchange.n)
        if self.origin is not None:
            found = [*self._parent.exchanges[: self.origin.at], *found]
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
                kind = ended.kind or step.kind
                step = msgspec.structs.replace(
                    step, kind=kind, ended=ended.ended, error=ended.error
                )
            steps.append(step)
        return steps

    @property
    def draws(self) -> list[Reads]:
        """What was drawn, in the order it was written."""
        return self.chance.reads

    @property
    def chance(self) -> Draws:
        """All that the tape knows of chance, as if it had been drawn at once."""
        decode = msgspec.json.Decoder(Draws).decode
        drawn = [self._read(decode, aside) for _, aside in self._events(DRAWS)]
        return Draws(
            reads=[reads for one in drawn for reads in one.reads],
            seed=next((one.seed for one in drawn if one.seed), None),
            generators=[state for one in drawn for state in one.generators],
            ambient=next((one.ambient for one in drawn if one.ambient is not None), None),
        )

    @property
    def surroundings(self) -> list[Seen]:
        """What the agent read around itself, in the order it did."""
        decode = msgspec.json.Decoder(Surroundings).decode
        looks = (self._read(decode, aside) for _, aside in self._events(SURROUNDINGS))
        return [seen for look in looks for seen in look.seen]

    @cached_property
    def checkpoints(self) -> list[CheckpointEvent]:
        """What is known of a framework's checkpoints, in the order in which it happened."""
        return [
            self._read(msgspec.json.Decoder(EVENTS[event.kind]).decode, bytes(event.aside))
            for event in self.events
            if event.kind in EVENTS
        ]

    @property
    def environment(self) -> Environment | None:
        """Where the recording was made."""
        return self._last(ENVIRONMENT, msgspec.json.Decoder(Environment).decode)

    @property
    def hash_seed(self) -> str | None:
        """The PYTHONHASHSEED of the recording; None where hashes were random, or nothing says."""
        return self.environment.hash_seed if self.environment else None

    @property
    def branch(self) -> Branch | None:
        """What a fork changed, where this is a branch that one made."""
        return self._last(BRANCH, msgspec.json.Decoder(Branch).decode)

    @property
    def receipt(self) -> Receipt | None:
        """What the recording says about itself; None while it is incomplete."""
        return self._last(RECEIPT, msgspec.json.Decoder(Receipt).decode)

    @cached_property
    def digest(self) -> str:
        """The digest of the run, computed from what the file holds (not read from its receipt)."""
        return chain(exchange.canonical for exchange in self.exchanges)

    @property
    def keeps_bodies(self) -> bool:
        """Whether bodies are on the tape, and not only their hashes."""
        return self.mode != "metadata"

    def blob(self, sha: str) -> bytes:
        """Return the bytes at an address, verified."""
        if sha == EMPTY:
            return b""
        if not self.keeps_bodies:
            raise TapeError(f"tracefork: {self.path} keeps hashes, not bodies (mode metadata).")
        with self._lock:
            _ = self._recorded
            try:
                return self._blobs.get(sha)
            except (sqlite3.Error, MemoryError) as error:
                raise self._unreadable(error) from error

    @property
    def blobs(self) -> list[str]:
        """The addresses of all bodies, in the order they were written."""
        with self._lock:
            _ = self._recorded
            return list(self._blobs)

    @property
    def events(self) -> list[Event]:
        """Everything on the tape but the bodies, as it was written, of whatever kind."""
        self._check_is_open()
        try:
            with self._lock:
                return list(self._log.events())
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to one."""
        steps: list[StepRecord] = []
        while step is not None and (record := self._steps_by_id.get(step)) and len(steps) < 64:
            steps.append(record)
            step = record.parent
        return tuple(reversed(steps))

    def step_path(self, step: str | None) -> tuple[str, ...]:
        """Return the names of the steps from the root down to one, for people."""
        return tuple(record.name for record in self.steps_down_to(step))

    @cached_property
    def _steps_by_id(self) -> dict[str, StepRecord]:
        return {step.id: step for step in self.steps}

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
        with self._lock:
            return self._recorded.get(kind, [])

    @cached_property
    def _recorded(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """Everything on the tape but the bodies, as (payload, aside) by kind."""
        self._check_is_open()
        found: dict[str, list[tuple[bytes, bytes]]] = {}
        try:
            for segment, lines in self._log.segments():
                for event in events(lines):
                    if event.kind == BLOB:
                        self._blobs.add(segment, self._read(_blob, bytes(event.aside)))
                    else:
                        documents = bytes(event.payload), bytes(event.aside)
                        found.setdefault(event.kind, []).append(documents)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        except _DAMAGED as error:
            raise self._damaged(error) from error
        return found

    def _last(self, kind: str, decode: Callable[[bytes], T]) -> T | None:
        found = self._events(kind)
        return self._read(decode, found[-1][1]) if found else None

    def _read(self, decode: Callable[[bytes], T], data: bytes) -> T:
        try:
            return decode(data)
        except _DAMAGED as error:
            raise self._damaged(error) from error

    @property
    def parent(self) -> Tape | None:
        """The tape that this one is a branch of, if it is one; it is closed with it."""
        return self._parent if self.origin else None

    @cached_property
    def _parent(self) -> Tape:
        """The tape that this one is a branch of, which must still be what it was."""
        assert self.origin is not None
        parent = Tape.open(self.path.with_name(self.origin.name))
        try:
            # Lines get shorter from tape to tape: no tape is its own ancestor.
            held = parent.exchanges[: self.origin.at] if parent.needs == self.origin.line else None
            if held is None or chain(one.canonical for one in held) != self.origin.digest:
                raise TapeError(
                    f"tracefork: {self.path} is a branch of {parent.path}, which is not what it "
                    "was: it was changed, or recorded anew."
                )
        except BaseException:
            parent.close()
            raise
        return parent

    def _of_parent(self, sha: str) -> bytes:
        return self._parent.blob(sha)

    def _find_mode(self) -> Mode:
        name = str(self._meta("mode") or "raw")
        try:
            return as_mode(name)
        except UsageError as error:
            raise TapeError(
                f"tracefork: {self.path} was recorded in a mode that is not known here: {name!r}. "
                "Upgrade tracefork-core."
            ) from error

    def _find_key(self) -> Key | None:
        """Return what opens a sealed tape; without it, only its structure can be read."""
        wrapped = self._meta("key")
        return unwrap(wrapped) if isinstance(wrapped, bytes) else None

    @property
    def _cipher(self) -> Cipher | None:
        return self.key.seal if self.key else None

    @property
    def needs(self) -> list[str]:
        """The files beside it that a branch cannot be read without."""
        return self.origin.names if self.origin else []

    @property
    def structure(self) -> Structure | None:
        """What a closed sealed tape says without its key."""
        document = self._meta("structure")
        return self._read(_structure, document) if isinstance(document, bytes) else None

    @property
    def opens(self) -> bool:
        """Whether the tape can be read here: it is not sealed, or its key is at hand."""
        return self.mode != "sealed" or self.key is not None

    def _check_is_open(self) -> None:
        if not self.opens:
            held = holder()
            raise TapeError(
                f"tracefork: {self.path} is sealed, and not sealed for this {held}."
                if held
                else f"tracefork: {self.path} is sealed. Name your age identity file in "
                "TRACEFORK_IDENTITY, or give TRACEFORK_PASSPHRASE."
            )

    def _meta(self, key: str) -> object:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _unreadable(self, error: Exception) -> TapeError:
        return TapeError(f"tracefork: cannot read {self.path}: {_words(error)}.")

    def _damaged(self, error: Exception) -> TapeError:
        return TapeError(f"tracefork: {self.path} holds a damaged event: {_words(error)}.")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
