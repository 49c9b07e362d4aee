"""The checksum of a closed tape: one flipped bit anywhere in its file is found.

It is the sha256 of the whole file, taken with zeros in its own place, and lies in `meta`. The
digest covers what crossed the boundary, and CRCs cover the rows of the log. The checksum covers the
rest too, even unused pages. It proves no origin: anybody who changes a tape can compute it again.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sqlite3
from pathlib import Path

from tracefork_core.errors import TapeError

_SIZE = 32
_NOT_YET = b"not computed yet"
"""The first bytes of the placeholder, which a kill before `write` leaves in the file."""


def make_place(db: sqlite3.Connection) -> bytes:
    """Reserve room for the checksum, and return the placeholder that lies there until `write`."""
    mark = _NOT_YET + os.urandom(_SIZE - len(_NOT_YET))
    db.execute("INSERT OR REPLACE INTO meta VALUES ('checksum', ?)", (mark,))
    return mark


def write(path: Path, mark: bytes) -> None:
    """Replace the placeholder by the checksum. The file must have no writer any more.

    Raises:
        TapeError: the file cannot be written.
    """
    try:
        file = os.open(path, os.O_RDWR)
        try:
            with mmap.mmap(file, 0) as data:
                place = data.find(mark)
                if place >= 0:  # Missing while a reader keeps the log from being folded in.
                    data[place : place + _SIZE] = _hash(data, place)
                    data.flush()
            os.fsync(file)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        raise TapeError(f"tracefork: cannot finish {path}: {error}.") from error


def fill(data: bytearray, mark: bytes) -> None:
    """As `write`, for the bytes of a tape that is not in a file yet."""
    place = data.find(mark)
    if place >= 0:
        data[place : place + _SIZE] = _hash(data, place)


def holds(path: Path, db: sqlite3.Connection) -> bool | None:
    """Return whether a file is unchanged since it was closed; None if it was not closed."""
    row = db.execute("SELECT value FROM meta WHERE key = 'checksum'").fetchone()
    expected = row[0] if row else None
    if expected is None or (isinstance(expected, bytes) and expected.startswith(_NOT_YET)):
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = data.find(expected) if isinstance(expected, bytes) else -1
        return place >= 0 and len(expected) == _SIZE and _hash(data, place) == expected


def _hash(data: mmap.mmap | bytearray, place: int) -> bytes:
    sha = hashlib.sha256()
    with memoryview(data) as view:
        sha.update(view[:place])
        sha.update(bytes(_SIZE))
        sha.update(view[place + _SIZE :])
    return sha.digest()
