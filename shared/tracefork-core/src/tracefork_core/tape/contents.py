"""What lies in a tape: its head, its events by kind, and its bodies. Errors name the tape."""

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
DAMAGED = (msgspec.MsgspecError, MemoryError, RecursionError, TypeError, ValueError)
"""What decoding anything but a document raises: text that is no UTF-8 is a ValueError.

A MemoryError is what SQLite says of a damaged row that declares more than any memory holds.
"""


class Contents:
    """Reads the log once, when something of it is asked for; safe to use from any thread.

    `of_parent` returns the bodies that a branch has of its parent.
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
        """Close the file, once no thread is reading it: SQLite does not survive the contrary."""
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
        """Return the aside of the last event of a kind, if there is one."""
        found = self.of_kind(kind)
        return self.read(decode, found[-1][1]) if found else None

    def read(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode a document."""
        try:
            return decode(data)
        except DAMAGED as error:
            raise self._damaged(error) from error

    def flights(self) -> list[Flight]:
        """Return what was in flight when the log was read, and what has landed since."""
        with self._lock:
            _ = self._recorded
            return self._flights

    def events(self) -> list[Event]:
        """Return everything but the bodies, as it was written, of whatever kind."""
        self._head.check_opens()
        with self.naming_damage(), self._lock:
            return list(self._log.events())

    def blob(self, sha: str) -> bytes:
        """Return the bytes at an address, verified."""
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
    def naming_damage(self) -> Iterator[None]:
        """Raise a TapeError that names the tape, where what is read inside is no tape's."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        except DAMAGED as error:
            raise self._damaged(error) from error

    @cached_property
    def _recorded(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """Everything but the bodies, as (payload, aside) by kind."""
        self._head.check_opens()
        found: dict[str, list[tuple[bytes, bytes]]] = {}
        if not self._head.complete:
            # Before the log: what lands while both are read is in both, and not in neither.
            self._flights = journal.read(self._path, self._head.cipher)
        with self.naming_damage():
            for segment, lines in self._log.segments():
                for event in events(lines):
                    if event.kind == BLOB:
                        self._blobs.add(segment, self.read(_blob, bytes(event.aside)))
                    else:
                        documents = bytes(event.payload), bytes(event.aside)
                        found.setdefault(event.kind, []).append(documents)
        return found

    def _unreadable(self, error: Exception) -> TapeError:
        return TapeError(f"tracefork: cannot read {self._path}: {in_words(error)}.")

    def _damaged(self, error: Exception) -> TapeError:
        return TapeError(f"tracefork: {self._path} holds a damaged event: {in_words(error)}.")


def in_words(error: Exception) -> str:
    """Return what an error says, or its name where it says nothing."""
    return str(error) or type(error).__name__


class Head:
    """What lies in the table `meta` of a tape.

    Attributes:
        complete: whether the recording was closed; a tape cut off by a crash is not.
        mode: what it keeps; see `mode.Mode`.
        origin: the tape that it is a branch of, if it is one.
        key: what opens it, where it is sealed and this environment has that.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db
        self.complete = self._said("state") == "complete"
        self.mode = self._known(str(self._said("mode") or "raw"))
        self.origin = read_origin(self._said("origin"), path.name)
        wrapped = self._said("key")
        self.key: Key | None = unwrap(wrapped) if isinstance(wrapped, bytes) else None

    @property
    def structure(self) -> bytes | None:
        """What a closed sealed tape says without its key, as a document."""
        document = self._said("structure")
        return document if isinstance(document, bytes) else None

    @property
    def opens(self) -> bool:
        """Whether the tape can be read here: it is not sealed, or its key is at hand."""
        return self.mode != "sealed" or self.key is not None

    @property
    def cipher(self) -> Cipher | None:
        """What its log and its journal are read with; None where they are plain."""
        return self.key.seal if self.key else None

    def check_opens(self) -> None:
        """Raise a TapeError that says how, where the tape cannot be read here."""
        if not self.opens:
            held = holder()
            raise TapeError(
                f"tracefork: {self._path} is sealed, and not sealed for this {held}."
                if held
                else f"tracefork: {self._path} is sealed. Name your age identity file in "
                "TRACEFORK_IDENTITY, or give TRACEFORK_PASSPHRASE."
            )

    def _said(self, key: str) -> object:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _known(self, name: str) -> Mode:
        try:
            return as_mode(name)
        except UsageError as error:
            raise TapeError(
                f"tracefork: {self._path} was recorded in a mode that is not known here: {name!r}. "
                "Upgrade tracefork-core."
            ) from error
