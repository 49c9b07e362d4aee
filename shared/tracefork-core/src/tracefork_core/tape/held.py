"""Hold a recording in memory until it is known whether its tape is kept.

A service records many runs and keeps few. Creating a file for each run and committing to it costs
more than the run itself. Here nothing touches the disk until `finish`, which builds the SQLite file
in memory, writes it under a temporary name and renames it. So a reader sees a whole tape or none.

There is no fsync. The operating system has the bytes of a finished tape, so it survives the death
of the process, but not a power cut.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from pathlib import Path

from tracefork_core.errors import TapeError, UnwritableError
from tracefork_core.tape import checksum
from tracefork_core.tape.blobs import BLOB, BlobWriter
from tracefork_core.tape.creation import SCRATCH, give_name
from tracefork_core.tape.digest import canonical
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    Structure,
    events,
    line,
    numbered_payloads,
)
from tracefork_core.tape.file import Body
from tracefork_core.tape.log import SEGMENT, LogWriter
from tracefork_core.tape.schema import APPLICATION_ID, PAGE, TAPE_TABLES, VERSION, Mode, connect
from tracefork_core.tape.sealing import Key

SUFFIX = ".new"
"""Suffix of a tape that is being written."""
MOST = 64 * 1024 * 1024
"""The most bytes of events and bodies that one run holds in memory."""


class HeldFile:
    """The file of a tape that is not written yet. It has the methods of `TapeFile`.

    Args:
        path: where the tape will be.
        mode: what it stores.
        key: makes the key of a sealed tape; called when the tape is written.
        most: the most bytes of events and bodies that it holds; `MOST` if that is None.

    `move` may give it another path until then.
    """

    def __init__(
        self,
        path: Path,
        mode: Mode,
        key: Callable[[], Key] | None = None,
        *,
        most: int | None = None,
    ) -> None:
        self.path = path
        self.absolute = path.absolute()
        self.cipher = None
        self.blobs = BlobWriter()
        self._mode = mode
        self._key = key
        self._most = MOST if most is None else most
        self._commits: list[tuple[bytes, list[Body]]] = []
        self._size = 0

    def commit(self, lines: bytes, bodies: Iterable[Body] = ()) -> None:
        """Hold lines of events, and the bodies they name.

        Raises:
            TapeError: the run is larger than what is held in memory.
        """
        held = list(bodies) if self._mode != "metadata" else []
        self._size += len(lines) + sum(len(data) for data, _, _ in held)
        if self._size > self._most:
            self._commits.clear()
            raise TapeError(
                f"tracefork: {self.path.name} is not recorded: the run is larger than "
                f"{self._most // 1024 // 1024} MB, the most that is held in memory."
            )
        self._commits.append((lines, held))

    def payloads(self) -> list[bytes]:
        """Return the payloads of the exchanges, in the order asked."""
        return numbered_payloads(event for lines, _ in self._commits for event in events(lines))

    def finish(self, lines: bytes, exchanges: int) -> None:
        """Write the whole tape, and give it its name when it is complete.

        Raises:
            TapeError: it cannot be written, or its name is taken; no part of it is left.
        """
        draft = self.absolute.with_name(f"{SCRATCH}{os.getpid()}-{self.path.name}{SUFFIX}")
        try:
            data = self._packed(lines, exchanges)
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(file, rest) :]
            finally:
                os.close(file)
            give_name(draft, self.absolute)
        except (OSError, sqlite3.Error) as error:
            raise UnwritableError(
                f"tracefork: cannot write {self.path}: {error}. The run is not on a tape."
            ) from error
        finally:
            draft.unlink(missing_ok=True)

    def move(self, path: Path) -> None:
        """Choose another place for the tape."""
        self.path, self.absolute = path, path.absolute()

    def close(self) -> None:
        """Free the memory."""
        self._commits.clear()

    def discard(self) -> None:
        """Free the memory."""
        self._commits.clear()

    def stopped(self, error: Exception) -> TapeError:
        """Return the error that says why nothing more can be held."""
        return TapeError(f"tracefork: recording to {self.path} stopped: {error}.")

    def _packed(self, last: bytes, exchanges: int) -> bytearray:
        """Return the bytes of the closed tape, whose last events are `last`."""
        key = self._key() if self._key is not None else None
        with closing(connect(":memory:")) as db:
            db.deserialize(_empty())
            db.execute("BEGIN")
            log = LogWriter(db, key.seal if key else None)
            lines: list[bytes] = []
            new: list[bytes] = []
            size = 0
            for held, bodies in [*self._commits, (last, [])]:
                for data, sha, like in bodies:
                    if (put := self.blobs.put(data, sha, size, like)) is not None:
                        record, fresh = put
                        lines.append(line(BLOB, b"{}", canonical(record)))
                        new.append(fresh)
                        size += len(fresh)
                lines.append(held)
                if max(size, sum(map(len, lines))) >= SEGMENT:
                    _append(log, lines, new)
                    lines, new, size = [], [], 0
            _append(log, lines, new)
            meta: dict[str, str | bytes] = {"mode": self._mode, "state": "complete"}
            if key is not None:
                meta |= {"key": key.wrapped, "structure": canonical(Structure(exchanges))}
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())
            mark = checksum.make_place(db)
            db.execute("COMMIT")
            tape = bytearray(db.serialize())
        checksum.fill(tape, mark)
        return tape


def _append(log: LogWriter, lines: list[bytes], bodies: list[bytes]) -> None:
    """Write one segment."""
    log.append(b"".join(lines), bodies)
    log.pack()


@cache
def _empty() -> bytes:
    """Return the bytes of a tape without rows."""
    with closing(connect(":memory:")) as db:
        db.execute(f"PRAGMA page_size={PAGE}")
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={VERSION}")
        for table in TAPE_TABLES.values():
            db.execute(table)
        db.execute("COMMIT")
        return db.serialize()


class NoJournal:
    """The journal of a held recording: what is in flight is lost with the process."""

    def begin(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Do nothing."""

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Do nothing."""

    def chunk(self, n: int, turn: int, data: bytes) -> None:
        """Do nothing."""

    def end(self, n: int) -> None:
        """Do nothing."""

    def close(self, *, remove: bool) -> None:
        """Do nothing."""
