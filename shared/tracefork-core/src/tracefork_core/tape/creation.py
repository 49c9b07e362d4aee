"""How the file of a tape is made: in its place, whole, or not at all.

A recording writes in place and is durable from the first commit. A rewritten tape is *drafted*: it
gets its name when it is complete.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from tracefork_core.errors import TapeError, UnwritableError, UsageError
from tracefork_core.tape.schema import (
    APPLICATION_ID,
    BESIDE,
    LOGS,
    PAGE,
    TAPE_TABLES,
    VERSION,
    are_threads,
    beside,
    connect,
    holds_threads,
    is_folder,
    open_readonly,
)

_CHECKPOINT = 256  # Pages in the log before they are folded into the file, which takes two fsyncs.
_LAST_COMMIT = 8  # Pages of the commit that makes a log full.
_FRAME = 24  # Bytes before each page in the log.

SCRATCH = ".tracefork-"
"""What folders begin with that are gone when a command has ended, unless it was killed."""


def create(path: Path, *, overwrite: bool) -> sqlite3.Connection:
    """Create a tape file and return its connection, in WAL mode.

    Raises:
        UsageError: the file exists and `overwrite` is false, somebody records to it, or its folder
            does not exist.
        TapeError: the file to overwrite is not a tape, or the folder cannot be written.
    """
    check_place(path, overwrite=overwrite)
    if os.path.lexists(path):
        _remove(path)
    try:
        # Created empty and exclusively first: two recorders of one file cannot both win.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise _is_taken(path) from error
    except OSError as error:
        raise _is_unwritable(path, error) from error
    try:
        return _lay_out(path)
    except (OSError, sqlite3.Error) as error:
        discard(path)
        raise _is_unwritable(path, error) from error


def discard(path: Path) -> None:
    """Leave nothing of a tape behind."""
    for suffix in ("", *BESIDE):
        with suppress(OSError):
            beside(path, suffix).unlink()


def clear_way(path: Path) -> None:
    """Remove what a killed recording left beside a tape that is gone: it would be this one's.

    Raises:
        OSError: it cannot be removed.
    """
    for suffix in LOGS:
        beside(path, suffix).unlink(missing_ok=True)


def check_place(path: Path, *, overwrite: bool = False) -> None:
    """Make sure that a file may be put somewhere.

    Raises:
        UsageError: there is no such folder, or something of that name that is not to be replaced.
    """
    if not is_folder(path.parent):
        raise UsageError(
            f"tracefork: no folder {path.parent} to put {path.name} in. Make it first, or name "
            "another."
        )
    if is_folder(path):
        raise UsageError(f"tracefork: {path} is a folder; name a file to record to.")
    if os.path.lexists(path) and not overwrite:
        if holds_threads(path):
            raise UsageError(f"{are_threads(path)} Record to another name.")
        raise UsageError(
            f"tracefork: {path} exists and nothing is overwritten unasked. Name another (-o), "
            "or replace it, where that can be asked for (overwrite=True, --overwrite)."
        )


def limit_log(db: sqlite3.Connection, pages: int) -> int:
    """Let the log be folded in when it has so many pages; return the bytes that it keeps."""
    size = (pages + _LAST_COMMIT) * (_FRAME + PAGE)
    db.execute(f"PRAGMA wal_autocheckpoint={pages}")
    db.execute(f"PRAGMA journal_size_limit={size}")
    return size


def _lay_out(path: Path) -> sqlite3.Connection:
    """Write the schema in one atomic step: a file of ours is empty or a tape, never half of one."""
    db = connect(str(path))
    try:
        db.execute(f"PRAGMA page_size={PAGE}")
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={VERSION}")
        for table in TAPE_TABLES.values():
            db.execute(table)
        db.execute("INSERT INTO meta VALUES ('state', 'recording')")
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        size = limit_log(db, _CHECKPOINT)
        db.execute("SELECT NULL FROM meta").fetchall()  # The log is there now, as private as this.
        # A commit that makes a file longer is a third dearer than one that does not. What lies
        # behind the last page that was committed means nothing to SQLite.
        with beside(path, "-wal").open("r+b") as log:
            log.write(bytes(size))
    except BaseException:
        db.close()
        raise
    return db


def _remove(path: Path) -> None:
    """Delete an earlier tape, but never a file that is not one, nor one that is in use."""
    if path.is_file() and path.stat().st_size == 0:
        path.unlink()  # A recording that was killed before its first byte.
        return
    if not path.is_file():
        raise UsageError(
            f"tracefork: {path} is no file (a device, a pipe, or a link to nothing), and nothing "
            "but a tape is replaced. Record to another name."
        )
    open_readonly(path).close()
    try:
        with closing(connect(str(path))) as db:
            db.execute("PRAGMA busy_timeout=0")
            db.execute("PRAGMA journal_mode=DELETE")  # Refused while anybody else has it open.
    except sqlite3.OperationalError as error:
        raise _is_taken(path) from error
    except sqlite3.Error as error:
        raise TapeError(f"tracefork: cannot overwrite {path}: {error}.") from error
    clear_way(path)
    path.unlink(missing_ok=True)


def _is_unwritable(path: Path, error: Exception) -> UnwritableError:
    return UnwritableError(
        f"tracefork: cannot record to {path}: {error}. Name a place that can be written."
    )


def _is_taken(path: Path) -> UsageError:
    return UsageError(
        f"tracefork: {path} is in use: another recording writes to it, or somebody reads it. "
        "Record to another name, or end that first."
    )


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Give a path to write to; the file there takes its name when the block ends well.

    Raises:
        UsageError: there is something of that name, or no folder for it.
        UnwritableError: the folder cannot be written.
    """
    check_place(target)
    folder = Path(_made(target))
    try:
        draft = folder / target.name
        yield draft
        _give_name(draft, target)
        _clear_way(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made(target: Path) -> str:
    try:
        return mkdtemp(prefix=f"{SCRATCH}draft-", dir=target.absolute().parent)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {target}: {error.strerror}. Name a place that can be written."
        ) from error


def _clear_way(target: Path) -> None:
    """Remove what is not of this file, which nobody has written to under its name."""
    try:
        clear_way(target)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: {target} is written, but what a killed recording of that name left "
            f"cannot be removed: {error}. Remove it before you read {target.name}."
        ) from error


def _give_name(draft: Path, target: Path) -> None:
    """Give a file its name, unless another one has got it meanwhile."""
    try:
        os.link(draft, target)
    except FileExistsError:
        check_place(target)
        raise
    except OSError:  # The file system knows no second names.
        check_place(target)
        draft.rename(target)
