"""Read and hash all of a tape, and name each part that is corrupt."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import checksum, event, schema, surroundings
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.log import LogReader
from tracefork_core.tape.reader import Tape

_PAYLOADS = {event.EXCHANGE: event.ExchangePayload}
_ASIDES = {
    event.EXCHANGE: event.ExchangeAside,
    event.STEP: event.StepRecord,
    event.STEP_END: event.StepEnd,
    event.DRAWS: event.Draws,
    surroundings.SURROUNDINGS: surroundings.Surroundings,
    surroundings.FILES: surroundings.Files,
    surroundings.INPUT: surroundings.Input,
    event.BRANCH: event.Branch,
    event.TURNS: event.Moved,
    event.ENVIRONMENT: event.Environment,
    event.RECEIPT: event.Receipt,
}


@dataclass(frozen=True, slots=True)
class Damage:
    """One part of a tape that is corrupt."""

    where: str
    what: str


@dataclass(slots=True)
class Integrity:
    """The result of reading all of a tape.

    `digest` is computed, `recorded` is the one in its receipt. `changed` says that the file changed
    since it was closed, `sealed` that only its file and its rows could be checked here.
    """

    events: int = 0
    blobs: int = 0
    exchanges: int = 0
    complete: bool = False
    digest: str | None = None
    recorded: str | None = None
    changed: bool = False
    sealed: bool = False
    damage: list[Damage] = field(default_factory=list)

    def found(self, where: str, what: object) -> None:
        """Note a corrupt part, once per message."""
        message = str(what).removeprefix("tracefork: ")
        if all(damage.what != message for damage in self.damage):
            self.damage.append(Damage(where, message))


def check_integrity(path: Path) -> Integrity:
    """Check the file, its rows, every blob, every event, and the digest against the receipt.

    Raises:
        UsageError: no such file exists.
        TapeError: the file is not a tape.
    """
    result = Integrity()
    with closing(schema.open_readonly(path)) as db:
        try:
            _check_file(path, db, result)
        except (sqlite3.Error, MemoryError, TapeError) as error:
            result.found("file", str(error) or type(error).__name__)
    try:
        with Tape.open(path) as tape:
            result.complete, result.sealed = tape.complete, not tape.opens
            if tape.opens:
                _check_events(tape, result)
                _check_blobs(tape, result)
                _check_exchanges(tape, result)
    except (TapeError, TypeError, ValueError) as error:
        result.found("tape", error)
    if not result.damage and result.changed:
        result.found("file", "a byte outside of all records changed since the tape was closed")
    return result


def check_undamaged(path: Path) -> Integrity:
    """Check a tape, and raise if any part of it is corrupt.

    Raises:
        UsageError: no such file exists.
        TapeError: the tape is corrupt, or the file is not a tape.
    """
    result = check_integrity(path)
    if result.damage:
        first = result.damage[0]
        raise TapeError(
            f"tracefork: {path} is corrupt ({first.where}: {first.what}). Nothing was written. "
            f"`tracefork verify --integrity {shlex.quote(str(path))}` lists every corrupt part."
        )
    return result


def _check_file(path: Path, db: sqlite3.Connection, result: Integrity) -> None:
    for (message,) in db.execute("PRAGMA integrity_check"):
        if message != "ok":
            result.found("file", message)
    result.changed = checksum.holds(path, db) is False
    for row in LogReader(db).rows():
        if not row.is_intact:
            result.found(f"row {row.seq}", "it changed since it was recorded")


def _check_blobs(tape: Tape, result: Integrity) -> None:
    for sha in tape.blobs:
        result.blobs += 1
        try:
            tape.blob(sha)
        except TapeError as error:
            result.found(f"blob {sha[:12]}", error)


def _check_events(tape: Tape, result: Integrity) -> None:
    for number, entry in enumerate(tape.events):
        result.events += 1
        for data, types in ((entry.payload, _PAYLOADS), (entry.aside, _ASIDES)):
            try:
                msgspec.json.decode(data, type=types.get(entry.kind, msgspec.Raw))
            except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
                result.found(f"event {number} ({entry.kind})", error)


def _check_exchanges(tape: Tape, result: Integrity) -> None:
    result.complete = tape.complete
    exchanges = tape.exchanges
    result.exchanges = len(exchanges)
    for exchange in exchanges:
        for where, what in _faults(exchange):
            result.found(f"exchange {exchange.n}, {where}", what)
    result.digest = tape.digest
    receipt = tape.receipt
    if receipt is None:
        if tape.complete:
            result.found("receipt", "it is missing, although the tape is marked as complete")
        return
    result.recorded = receipt.digest
    if receipt.digest != tape.digest:
        result.found("digest", f"the receipt says {receipt.digest}, the tape holds {tape.digest}")
    if receipt.exchanges > len(exchanges):
        missing = receipt.exchanges - len(exchanges)
        result.found("exchanges", f"{missing} of the {receipt.exchanges} recorded are missing")


def _faults(exchange: Exchange) -> Iterator[tuple[str, object]]:
    """Yield the bodies of an exchange that cannot be read, each with the error."""
    if not exchange.has_bodies:
        return
    try:
        _ = exchange.request_body
    except TapeError as error:
        yield "request body", error
    try:
        _ = exchange.chunks
    except TapeError as error:
        yield "response body", error
