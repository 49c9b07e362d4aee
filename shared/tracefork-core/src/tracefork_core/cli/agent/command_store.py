"""Remember on this machine which command made which tape.

A tape is data, often a stranger's: a command is never taken from it. What `tracefork replay TAPE`
runs is what was recorded *here*, at that path, with that digest: one small file for each tape,
readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tracefork_core.cli.agent.agent import Agent, Form


class Run(msgspec.Struct, frozen=True):
    """The command that made a tape. `recorded` is nanoseconds since the epoch."""

    tape: str
    digest: str
    recorded: int
    cwd: str
    form: Form
    target: str
    args: list[str]

    @property
    def path(self) -> Path:
        """Where the tape was recorded."""
        return Path(self.tape)

    @property
    def agent(self) -> Agent:
        """The command, to be run in `cwd`."""
        return Agent(self.form, self.target, tuple(self.args))


def home() -> Path:
    """Return the store's folder; it need not exist."""
    if chosen := os.environ.get("TRACEFORK_HOME"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "tracefork"


def remember(run: Run) -> None:
    """Write a command down, in place of an older one for the same path.

    Raises:
        OSError: the store cannot be written.
    """
    folder = home() / "runs"
    for part in (home(), folder):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".new")  # mkstemp: 0600
    # Not msgspec's JSON: names and arguments need not be Unicode.
    with os.fdopen(descriptor, "w") as file:
        json.dump(msgspec.to_builtins(run), file)
    Path(draft).replace(_file(run.path))


def recall(tape: Path) -> Run | None:
    """Return the command recorded for a path; the caller compares the digest."""
    return _read(_file(tape))


def runs() -> Iterator[Run]:
    """Yield everything remembered, in no order."""
    for file in (home() / "runs").glob("*.json"):
        if run := _read(file):
            yield run


def _file(tape: Path) -> Path:
    key = hashlib.sha256(os.fsencode(tape.resolve())).hexdigest()
    return home() / "runs" / f"{key[:32]}.json"


def _read(file: Path) -> Run | None:
    try:
        found = file.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            return None  # Somebody else could have written what would run here.
        return msgspec.convert(json.loads(file.read_bytes()), Run)
    except (OSError, ValueError, RecursionError):  # What msgspec raises is a ValueError, too.
        return None
