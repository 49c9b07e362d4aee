"""The tapes of a folder as a list that keeps itself current.

All names are there at once, with their sizes: that needs no tape to be opened. What a tape says of
itself follows as it is read, each once for as long as its files stay the same.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec

from tracefork_core.cli import tape_names
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TraceforkError
from tracefork_core.tape import Tape
from tracefork_core.tape.marks import label_of
from tracefork_core.tape.schema import beside, holds_threads

_AT_ONCE = 0.1
"""After so many seconds of reading, the viewer gets what was read so far."""
State = tuple[int, int, int] | None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One tape of the list; `page/src/data.d.ts` describes it.

    Attributes:
        name: the name of the file.
        bytes: its size, with the files beside it that a recording writes.
        modified: when it was last written, in milliseconds since the epoch.
        state: "" if it was not read yet; else complete, open, sealed, damaged or threads.
        started, took: when it began, and how long it took, in milliseconds; None if unknown.
        exchanges: how many exchanges it has.
        outcome: how the run ended: "ok", or the error; None while it is open.
        needs: the tapes that a branch needs, its parent first.
        at: where a branch leaves its parent.
        words: its mark, the request of a service, or where its fork was stopped.
        problem: why it cannot be read.
    """

    name: str
    bytes: int
    modified: int
    state: str = ""
    started: int | None = None
    took: int | None = None
    exchanges: int | None = None
    outcome: str | None = None
    needs: list[str] = []
    at: int | None = None
    words: str | None = None
    problem: str | None = None


class Folder:
    """The list of one folder. Safe to use from any thread.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._files: dict[str, tuple[State, ...]] = {}
        self._entries: dict[str, Entry] = {}
        self._unread: dict[str, None] = {}

    def look(self) -> bool:
        """Notice what was added, written or removed; return whether tapes are left to read."""
        with self._lock:
            there = {path.name: path for path in tape_names.inside(self.path)}
            for name in self._files.keys() - there.keys():
                del self._files[name], self._entries[name]
                self._unread.pop(name, None)
            for name, path in there.items():
                files = tuple(map(state_of, (path, beside(path, "-wal"), beside(path, "-flight"))))
                if files != self._files.get(name):
                    self._files[name] = files
                    self._entries[name] = _unread(name, files)
                    self._unread[name] = None
            until = time.monotonic() + _AT_ONCE
            # The newest first: that is what a person has come for.
            for name in sorted(self._unread, key=lambda one: -self._entries[one].modified):
                if time.monotonic() > until:
                    break
                del self._unread[name]
                self._entries[name] = _read(there[name], self._entries[name])
            return bool(self._unread)

    def entries(self) -> dict[str, Entry]:
        """Return the entries by name."""
        with self._lock:
            return dict(self._entries)

    def find(self, name: str) -> Path | None:
        """Return the path of a tape of the list; None for any other name, like `../x`."""
        with self._lock:
            return self.path / name if name in self._entries else None

    def family(self, name: str) -> list[str]:
        """Return a tape with its parents and its branches, itself first."""
        entries = self.entries()
        entry = entries.get(name)
        parents = [one for one in entry.needs if one in entries] if entry else []
        return [name, *parents, *sorted(one for one in entries if name in entries[one].needs)]


def state_of(file: Path) -> State:
    """Return what changes when a file is written; None if there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _unread(name: str, files: tuple[State, ...]) -> Entry:
    written = [state for state in files if state is not None]
    size, modified = sum(one[1] for one in written), max((one[2] for one in written), default=0)
    return Entry(name=name, bytes=size, modified=modified // 1_000_000)


def _read(path: Path, entry: Entry) -> Entry:
    """Return the entry of a tape with what the tape says of itself."""
    try:
        if holds_threads(path):
            return msgspec.structs.replace(entry, state="threads")
        with Tape.open(path) as tape:
            return _of_tape(tape, entry)
    except TraceforkError as error:
        problem = str(error).removeprefix("tracefork: ")
    except Exception as error:  # noqa: BLE001 - one hostile file must not hide the others
        problem = f"{type(error).__name__}: {error}"
    return msgspec.structs.replace(entry, state="damaged", problem=printable(problem))


def _of_tape(tape: Tape, entry: Entry) -> Entry:
    known = msgspec.structs.replace(
        entry, needs=tape.needs, at=tape.origin.at if tape.origin else None
    )
    if not tape.opens:
        held = tape.structure.exchanges if tape.structure else None
        return msgspec.structs.replace(known, state="sealed", exchanges=held)
    environment, receipt, served = tape.environment, tape.receipt, tape.served
    words = [served.name if served else None, label_of(tape.path), tape.stop and tape.stop.words]
    return msgspec.structs.replace(
        known,
        state="complete" if tape.complete else "open",
        started=environment.started // 1_000_000 if environment else None,
        took=receipt.took // 1_000_000 if receipt else None,
        exchanges=receipt.exchanges if receipt else len(tape.exchanges),
        outcome=printable(receipt.outcome) if receipt else None,
        words=printable(" · ".join(word for word in words if word)) or None,
    )
