"""The folder of a recorder: how its tapes are named, marked, counted and removed.

Several worker processes share it, and each removes what is too much. So every step must also be
right if another process takes it at the same moment. A mark is a small file beside its tape: it can
be set long after the tape was closed, and does not change a byte of it.

    20261126T161500-123-POST-chat_4f3a9c.tape          time (UTC), what ran, id
    20261126T161500-123-POST-chat_4f3a9c.tape.mark     "failed", say: never removed
"""

from __future__ import annotations

import itertools
import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tracefork_core.errors import UsageError
from tracefork_core.tape.creation import SCRATCH, discard
from tracefork_core.tape.held import SUFFIX as DRAFT
from tracefork_core.tape.schema import BESIDE, MARK

_TAPE = ".tape"
_NAME = re.compile(r"\d{8}T\d{6}-\d{3}-[A-Za-z0-9-]*_[A-Za-z0-9-]+\.tape")
_UNSAFE_WORD = re.compile(r"[^A-Za-z0-9]+")
_UNSAFE_ID = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST_WORD, _LONGEST_ID = 60, 64
_ABANDONED = 600
"""Seconds after which a tape that is being written belongs to no running process."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a folder holds of a recorder's tapes; None is no bound. Age is in seconds."""

    bytes: int | None = None
    age: float | None = None
    tapes: int | None = None


class Kept(NamedTuple):
    """A tape of a recorder in its folder, with the bytes that it takes."""

    name: str
    bytes: int
    written: float


def safe_id(text: str) -> str:
    """Return an id as it stands in the name of a tape; empty if nothing of it can."""
    return _UNSAFE_ID.sub("-", text[:_LONGEST_ID]).strip("-")


def tape_name(started: int, what: str, run: str) -> str:
    """Return the name of a tape from its start (nanoseconds), what ran, and the run's safe id."""
    moment = datetime.fromtimestamp(started // 10**9, UTC)
    word = _UNSAFE_WORD.sub("-", what).strip("-")[:_LONGEST_WORD].strip("-")
    return f"{moment:%Y%m%dT%H%M%S}-{started // 10**6 % 1000:03}-{word}_{run}{_TAPE}"


def free_path(folder: Path, started: int, what: str, run: str) -> Path:
    """Return the path for the tape of a run: with a number if an id comes twice at one moment."""
    for n in itertools.count(1):
        path = folder / tape_name(started, what, run if n == 1 else f"{run}-{n}")
        if not path.exists():
            return path
    raise AssertionError


def check_folder(folder: Path) -> None:
    """Make a folder if it is missing.

    Raises:
        UsageError: it cannot be made, or is a file.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else str(error.strerror)
        raise UsageError(
            f"tracefork: cannot record to the folder {folder}: {reason}. Choose another folder."
        ) from error


def find(folder: Path, run: str) -> Path | None:
    """Return the latest tape of the run with this id."""
    ending = f"_{safe_id(run)}{_TAPE}"
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(ending)]
        own = [name for name in names if _NAME.fullmatch(name)]
        return folder / max(own) if own else None
    return None


def surplus(folder: Path, bounds: Bounds, now: float | None = None) -> list[Kept]:
    """Return the tapes that are too much, oldest first.

    A tape that is marked, signed, in use or the parent of a branch stays, and does not count: else
    a folder full of them would have no room for the next failure.
    """
    files = _inside(folder)
    names = files.keys()
    # A branch is called after its parent: the name up to the first dot, a dot, and more.
    parents = {name.partition(".")[0] + _TAPE for name in names if not _NAME.fullmatch(name)}
    tapes = sorted(
        Kept(name, *files[name])
        for name in names - parents
        if _NAME.fullmatch(name) and names.isdisjoint(name + suffix for suffix in BESIDE)
    )
    oldest = -math.inf if bounds.age is None else (now or time.time()) - bounds.age
    most = math.inf if bounds.bytes is None else bounds.bytes
    many = math.inf if bounds.tapes is None else bounds.tapes
    gone: list[Kept] = []
    size = sum(tape.bytes for tape in tapes)
    for tape in tapes:
        if len(tapes) - len(gone) > many or size > most or tape.written < oldest:
            gone.append(tape)
            size -= tape.bytes
    return gone


def shrink(folder: Path, bounds: Bounds) -> None:
    """Remove what is too much. Another process may do the same at the same time."""
    for tape in surplus(folder, bounds):
        path = folder / tape.name
        if not path.with_name(path.name + MARK).exists():  # Marked since the folder was read.
            discard(path)


def leftovers(folder: Path, now: float | None = None) -> Iterator[Path]:
    """Yield what killed processes left: tapes half written, and marks whose tape is gone."""
    now = now or time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(SCRATCH) and entry.name.endswith(DRAFT):
                with suppress(OSError):
                    if now - entry.stat().st_mtime > _ABANDONED:
                        yield Path(entry.path)


def sweep(folder: Path) -> None:
    """Remove what killed processes left."""
    for path in leftovers(folder):
        with suppress(OSError):
            path.unlink()


def _inside(folder: Path) -> dict[str, tuple[int, float]]:
    """Return the size and the time of the last write of each file in a folder, by name."""
    files: dict[str, tuple[int, float]] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # Another process has removed it.
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    files[entry.name] = status.st_size, status.st_mtime
    return files
