"""What lies in a tape: its head, its events by kind, and its bodies."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import journal
from tracefork_core.tape.blobs import BLOB, EMPTY, BlobReader, BlobRecord
from tracefork_core.tape.branches import read_origin
from tracefork_core.tape.event import Event, events
from tracefork_core.tape.journal import Flight
from tracefork_core.tape.log import Cipher, LogReader
from tracefork_core.tape.schema import Mode, as_mode
from tracefork_core.tape.sealing import Key, holder, unwrap

T = TypeVar("T")

_blob = msgspec.json.Decoder(BlobRecord).decode
CORRUPT = (msgspec.MsgspecError, MemoryError, RecursionError, TypeError, ValueError)
"""What decoding a corrupt document raises. Text that is not UTF-8 raises a ValueError.

SQLite raises a MemoryError for a corrupt row that declares more bytes than fit into memory.
"""


class Head:
    """The table `meta` of a tape.

    Attributes:
        complete: whether the recording was closed. A tape that a crash cut off is not complete.
        mode: what it stores; see `schema.Mode`.
        origin: the tape that it is a branch of, if any.
        key: the key of a sealed tape, if this environment can unwrap it.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db
        self.complete = self._value("state") == "complete"
        self.mode = self._known(str(self._value("mode") or "raw"))
        self.origin = read_origin(self._value("origin"), path.name)
        wrapped = self._value("key")
        self.key: Key | None = unwrap(wrapped) if isinstance(wrapped, bytes) else None

    @property
    def structure(self) -> bytes | None:
        """What a closed sealed tape reveals without its key, as a document."""
        document = self._value("structure")
        return document if isinstance(document, bytes) else None

    @property
    def opens(self) -> bool:
        """Whether the tape can be read here: it is not sealed, or its key is available."""
        return self.mode != "sealed" or self.key is not None

    @property
    def cipher(self) -> Cipher | None:
        """What decrypts its log and its journal; None if they are plain."""
        return self.key.seal if self.key else None

    def check_opens(self) -> None:
        """Raise a TapeError that says what is needed, if the tape cannot be read here."""
        if not self.opens:
            held = holder()
            raise TapeError(
                f"tracefork: {self._path} is sealed, and this {held} does not open it. Use "
                "one that it was sealed for."
                if held
                else f"tracefork: {self._path} is sealed. Name your age identity file in "
                "TRACEFORK_IDENTITY, or set TRACEFORK_PASSPHRASE."
            )

    def _value(self, key: str) -> object:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _known(self, name: str) -> Mode:
        try:
            return as_mode(name)
        except UsageError as error:
            raise TapeError(
                f"tracefork: {self._path} was recorded in mode {name[:40]!r}, which this "
                "tracefork-core does not know. Upgrade tracefork-core."
            ) from error


class Contents:
    """Reads the log once, at the first use. Safe to use from any thread.

    `of_parent` returns the bodies that a branch shares with its parent.
    """

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        head: Head,
        of_parent: Callable[[str], bytes] | None,
    ) -> None:
        self._path = path
        self._db = db
        self._head = head
        self._log = LogReader(db, head.cipher)
        self._blobs = BlobReader(self._log, of_parent)
        self._lock = threading.RLock()
        self._flights: list[Flight] = []

    def close(self) -> None:
        """Close the file once no thread is reading it: closing it earlier crashes SQLite."""
        with self._lock:
            self._db.close()

    def of_kind(self, kind: str) -> list[tuple[bytes, bytes]]:
        """Return the payload and the aside of each event of a kind."""
        with self._lock:
            return self._recorded.get(kind, [])

    def asides(self, kind: str, decode: Callable[[bytes], T]) -> Iterator[T]:
        """Yield the asides of the events of a kind."""
        for _, aside in self.of_kind(kind):
            yield self.read(decode, aside)

    def last(self, kind: str, decode: Callable[[bytes], T]) -> T | None:
        """Return the aside of the last event of a kind, if any."""
        documents = self.of_kind(kind)
        return self.read(decode, documents[-1][1]) if documents else None

    def read(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode a document.

        Raises:
            TapeError: the document is corrupt.
        """
        try:
            return decode(data)
        except CORRUPT as error:
            raise self._corrupt(error) from error

    def flights(self) -> list[Flight]:
        """Return what was in flight when the log was read; some of it may have landed since."""
        with self._lock:
            _ = self._recorded
            return self._flights

    def events(self) -> list[Event]:
        """Return all events, of any kind, as they were written."""
        self._head.check_opens()
        with self.naming_tape(), self._lock:
            return list(self._log.events())

    def blob(self, sha: str) -> bytes:
        """Return the body at an address, verified."""
        if sha == EMPTY:
            return b""
        with self._lock:
            _ = self._recorded
            try:
                return self._blobs.get(sha)
            except (sqlite3.Error, MemoryError) as error:
                raise self._unreadable(error) from error

    def addresses(self) -> list[str]:
        """Return the addresses of all bodies, in the order they were written."""
        with self._lock:
            _ = self._recorded
            return list(self._blobs)

    @contextmanager
    def naming_tape(self) -> Iterator[None]:
        """Turn errors of SQLite and of decoding into a TapeError that names the tape."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        except CORRUPT as error:
            raise self._corrupt(error) from error

    @cached_property
    def _recorded(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """The (payload, aside) of all events but blobs, by kind."""
        self._head.check_opens()
        documents: dict[str, list[tuple[bytes, bytes]]] = {}
        if not self._head.complete:
            # Before the log: an exchange that lands meanwhile is in both, rather than in neither.
            self._flights = journal.read(self._path, self._head.cipher)
        with self.naming_tape():
            for segment, lines in self._log.segments():
                for event in events(lines):
                    if event.kind == BLOB:
                        self._blobs.add(segment, self.read(_blob, bytes(event.aside)))
                    else:
                        pair = bytes(event.payload), bytes(event.aside)
                        documents.setdefault(event.kind, []).append(pair)
        return documents

    def _unreadable(self, error: Exception) -> TapeError:
        return TapeError(f"tracefork: cannot read {self._path}: {described(error)}.")

    def _corrupt(self, error: Exception) -> TapeError:
        return TapeError(
            f"tracefork: {self._path} is corrupt: an event cannot be read: {described(error)}."
        )


def described(error: Exception) -> str:
    """Return the message of an error, or its class name if it has none."""
    return str(error) or type(error).__name__
