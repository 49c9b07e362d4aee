"""The checksum of a closed tape: one flipped bit anywhere in its file is found.

It is the sha256 of the whole file, taken with zeros in its own place, and lies in `meta`. The
digest covers what crossed the boundary, the CRCs cover the rows of the log; this covers the rest
too, unused pages included. It proves no origin: whoever changes a tape can compute it anew.
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
"""How the place begins until the checksum is known; a kill in between leaves it."""


def make_place(db: sqlite3.Connection) -> bytes:
    """Make room for the checksum, and return what lies there until it is known."""
    mark = _NOT_YET + os.urandom(_SIZE - len(_NOT_YET))
    db.execute("INSERT OR REPLACE INTO meta VALUES ('checksum', ?)", (mark,))
    return mark


def write(path: Path, mark: bytes) -> None:
    """Put the checksum into the place that was made for it, in a file nobody writes to any more.

    Raises:
        TapeError: the file cannot be written.
    """
    try:
        file = os.open(path, os.O_RDWR)
        try:
            with mmap.mmap(file, 0) as data:
                place = data.find(mark)
                if place >= 0:  # It is not, while somebody who reads the tape holds its log back.
                    data[place : place + _SIZE] = _hash(data, place)
                    data.flush()
            os.fsync(file)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        raise TapeError(f"tracefork: cannot finish {path}: {error}.") from error


def holds(path: Path, db: sqlite3.Connection) -> bool | None:
    """Return whether a file is as it was closed; None where nobody closed it to the end."""
    found = db.execute("SELECT value FROM meta WHERE key = 'checksum'").fetchone()
    expected = found[0] if found else None
    if expected is None or (isinstance(expected, bytes) and expected.startswith(_NOT_YET)):
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = data.find(expected) if isinstance(expected, bytes) else -1
        return place >= 0 and len(expected) == _SIZE and _hash(data, place) == expected


def _hash(data: mmap.mmap, place: int) -> bytes:
    found = hashlib.sha256()
    with memoryview(data) as view:
        found.update(view[:place])
        found.update(bytes(_SIZE))
        found.update(view[place + _SIZE :])
    return found.digest()
