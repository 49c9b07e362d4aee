"""Store on this machine which command recorded which tape.

A tape may come from a stranger, so a command is never read from a tape. `tracefork replay TAPE`
runs only a command that was recorded *here*, at that path, with that digest. Each tape has one
small file in the store, which only its owner can read.
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
    """The command that recorded a tape; `recorded` is in nanoseconds since the epoch.

    `is_branch` tells that it forked another tape, or ran it again.
    """

    tape: str
    digest: str
    recorded: int
    cwd: str
    form: Form
    target: str
    args: list[str]
    is_branch: bool = False

    @property
    def path(self) -> Path:
        """The path at which the tape was recorded."""
        return Path(self.tape)

    @property
    def agent(self) -> Agent:
        """The agent of the command, to run in `cwd`."""
        return Agent(self.form, self.target, tuple(self.args))


def home() -> Path:
    """Return the folder of the store, which may not exist yet."""
    if chosen := os.environ.get("TRACEFORK_HOME"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "tracefork"


def remember(run: Run) -> None:
    """Store a command, and replace an older one for the same path.

    Raises:
        OSError: the store cannot be written.
    """
    folder = home() / "runs"
    for part in (home(), folder):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".new")  # mkstemp: 0600
    # Not msgspec's JSON, which is Unicode only: names and arguments may not be.
    with os.fdopen(descriptor, "w") as file:
        json.dump(msgspec.to_builtins(run), file)
    Path(draft).replace(_file(run.path))


def recall(tape: Path) -> Run | None:
    """Return the command stored for a path, if any; the caller must compare the digest."""
    return _read(_file(tape))


def runs() -> Iterator[Run]:
    """Yield all stored commands, in no particular order."""
    for file in (home() / "runs").glob("*.json"):
        if run := _read(file):
            yield run


def _file(tape: Path) -> Path:
    key = hashlib.sha256(os.fsencode(tape.resolve())).hexdigest()
    return home() / "runs" / f"{key[:32]}.json"


def _read(file: Path) -> Run | None:
    try:
        status = file.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None  # Another user could have written the command that would run here.
        return msgspec.convert(json.loads(file.read_bytes()), Run)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors.
        return None
