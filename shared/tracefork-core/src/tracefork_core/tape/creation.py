"""How the file of a tape is made: in its place, whole, or not at all.

A recording writes in place and is durable from the first commit. A rewritten tape is *drafted*: it
gets its name when it is complete.
"""

from __future__ import annotations

import fcntl
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
"""Prefix of temporary folders. A command removes them when it ends, unless it is killed."""
DRAFT = f"{SCRATCH}draft-"
"""Prefix of the folders in which tapes are drafted. Their process holds a lock on them."""


def scratch_folder(tape: Path, purpose: str) -> Path:
    """Return a new temporary folder beside a tape, or in the system's if there it cannot be made.

    Beside the tape, links to it take no room.
    """
    prefix = f"{SCRATCH}{purpose}-"
    try:
        return Path(mkdtemp(prefix=prefix, dir=tape.absolute().parent))
    except OSError:  # A folder that is read-only, of another user or of an archive.
        return Path(mkdtemp(prefix=prefix))


def create(path: Path, *, overwrite: bool) -> sqlite3.Connection:
    """Create a tape file and return its connection, in WAL mode.

    Raises:
        UsageError: the file exists and `overwrite` is false, another recording writes to it, or
            its folder does not exist.
        TapeError: the file to overwrite is not a tape, or the folder is not writable.
    """
    check_place(path, overwrite=overwrite)
    if os.path.lexists(path):
        _remove(path)
    try:
        # First created empty and exclusively, so that two recorders cannot both get one file.
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
    """Delete a tape with everything beside it."""
    for suffix in ("", *BESIDE):
        with suppress(OSError):
            beside(path, suffix).unlink()


def clear_way(path: Path) -> None:
    """Remove what a killed recording left behind: a new tape at this path would get it.

    Raises:
        OSError: it cannot be removed.
    """
    for suffix in LOGS:
        beside(path, suffix).unlink(missing_ok=True)


def check_place(path: Path, *, overwrite: bool | None = None) -> None:
    """Check that a file may be created at a path; `overwrite` is None where that is no option.

    Raises:
        UsageError: the folder does not exist, or something is there that may not be replaced.
    """
    if not is_folder(path.parent):
        raise UsageError(
            f"tracefork: cannot create {path.name}: the folder {path.parent} does not exist. "
            "Create it, or choose another."
        )
    if is_folder(path):
        raise UsageError(f"tracefork: {path} is a folder. Name a file to record to.")
    if os.path.lexists(path) and not overwrite:
        if holds_threads(path):
            raise UsageError(f"{are_threads(path)} Record to another name.")
        raise UsageError(
            f"tracefork: {path} already exists. Use --overwrite (overwrite=True) to replace it, or "
            "-o to choose another name."
            if overwrite is not None
            else f"tracefork: {path} already exists. Use -o to choose another name."
        )


def limit_log(db: sqlite3.Connection, pages: int) -> int:
    """Checkpoint the log when it has so many pages; return the size in bytes that it keeps."""
    size = (pages + _LAST_COMMIT) * (_FRAME + PAGE)
    db.execute(f"PRAGMA wal_autocheckpoint={pages}")
    db.execute(f"PRAGMA journal_size_limit={size}")
    return size


def _lay_out(path: Path) -> sqlite3.Connection:
    """Write the schema in one transaction: the file is empty or a tape, never half of one."""
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
        db.execute(
            "SELECT NULL FROM meta"
        ).fetchall()  # This creates the log, with the permissions of the tape.
        # A commit that makes a file longer costs a third more than one that does not. So the log
        # gets its size now. SQLite ignores what lies behind the last committed page.
        with beside(path, "-wal").open("r+b") as log:
            log.write(bytes(size))
    except BaseException:
        db.close()
        raise
    return db


def _remove(path: Path) -> None:
    """Delete an earlier tape, but no file that is not a tape, and no tape that is in use."""
    if path.is_file() and path.stat().st_size == 0:
        path.unlink()  # Its recording was killed before the first byte.
        return
    if not path.is_file():
        raise UsageError(
            f"tracefork: {path} is a device, a pipe or a broken link; only a tape can be replaced. "
            "Record to another name."
        )
    open_readonly(path).close()
    try:
        with closing(connect(str(path))) as db:
            db.execute("PRAGMA busy_timeout=0")
            db.execute(
                "PRAGMA journal_mode=DELETE"
            )  # Refused while another connection has it open.
    except sqlite3.OperationalError as error:
        raise _is_taken(path) from error
    except sqlite3.Error as error:
        raise TapeError(f"tracefork: cannot overwrite {path}: {error}.") from error
    clear_way(path)
    path.unlink(missing_ok=True)


def _is_unwritable(path: Path, error: Exception) -> UnwritableError:
    return UnwritableError(
        f"tracefork: cannot record to {path}: {error}. Choose a place that you can write to."
    )


def _is_taken(path: Path) -> UsageError:
    return UsageError(
        f"tracefork: {path} is in use: another process records to it, or reads it. "
        "Record to another name, or end that process first."
    )


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Yield a path to write to; the file gets its name when the block ends without an error.

    Raises:
        UsageError: the file exists, or its folder does not.
        UnwritableError: the folder is not writable.
    """
    check_place(target)
    folder, lock = _made(target)
    try:
        draft = folder / target.name
        yield draft
        give_name(draft, target)
        _clear_way(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def is_abandoned(folder: Path) -> bool:
    """Return whether the process that drafts a tape in a folder is gone.

    Return False for other folders, and on a file system without locks.
    """
    if not folder.name.startswith(DRAFT):
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _made(target: Path) -> tuple[Path, int]:
    """Make the folder of a draft, and lock it: the lock ends with this process, however it ends."""
    try:
        folder = Path(mkdtemp(prefix=DRAFT, dir=target.absolute().parent))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        _lock(descriptor)  # Not on every file system. `gc` waits for a day there.
        return folder, descriptor
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {target}: {error.strerror}. Choose a place that you can "
            "write to."
        ) from error


def _lock(descriptor: int) -> bool:
    """Lock an open folder, unless a process has locked it; return whether that worked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clear_way(target: Path) -> None:
    """Remove a killed recording's leftovers, which readers would take for this tape's."""
    try:
        clear_way(target)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: {target} is written, but the files that a killed recording left beside it "
            f"cannot be removed: {error}. Remove them before you read {target.name}."
        ) from error


def give_name(draft: Path, target: Path) -> None:
    """Give a file its name, unless another file took the name meanwhile."""
    try:
        os.link(draft, target)
    except FileExistsError:
        check_place(target)
        raise
    except OSError:  # This file system has no hard links.
        check_place(target)
        draft.rename(target)
