"""Find the tape that a name means, and a free name for a new tape."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.cli.agent.command_store import Run

SUFFIX = ".tape"
_MARKED = 72
"""Bytes of an SQLite file up to the end of its application id."""


def find(name: str) -> Path:
    """Return the absolute path of the tape that a name means.

    Args:
        name: a path, with or without `.tape`; `last`, for the tape recorded last in this folder, or
            else on this machine, branches aside; or the file name of a tape recorded on this
            machine, in whatever folder.

    Raises:
        UsageError: there is no such tape, or the name is a folder.
    """
    for path in (Path(name), Path(name + SUFFIX)):
        if path.is_file():
            return path.absolute()
    if name and Path(name).is_dir():
        raise UsageError(
            f"tracefork: {name} is a folder, not a tape. `tracefork ls {shlex.quote(name)}` lists "
            "the tapes in it."
        )
    from tracefork_core.cli.agent import command_store

    known = [run for run in command_store.runs() if run.path.is_file()]
    if name != "last":
        known = [run for run in known if name in (run.path.stem, run.path.name)]
    if known:
        return max(known, key=_likelihood).path
    if name == "last":
        raise UsageError(
            "tracefork: there is no last tape: no tape that was recorded on this machine still "
            "exists. Record one: `tracefork record SCRIPT.py`"
        )
    raise UsageError(
        f"tracefork: there is no tape at {name}, and no tape of that name was recorded on this "
        "machine. `tracefork ls` lists the tapes in a folder."
    )


def _likelihood(run: Run) -> tuple[bool, bool, bool, int]:
    """Return what orders tapes by how likely a name means them."""
    here = Path.cwd()
    return not run.is_branch, run.path.parent == here, Path(run.cwd) == here, run.recorded


def inside(folder: Path) -> list[Path]:
    """Return the tapes directly in a folder, sorted by path."""
    from tracefork_core.tape.creation import SCRATCH

    return sorted(
        path for path in folder.glob("*") if not path.name.startswith(SCRATCH) and is_tape(path)
    )


def is_tape(path: Path) -> bool:
    """Return whether a file claims to be a tape, by its suffix or its first bytes."""
    if path.suffix == SUFFIX:
        return True
    from tracefork_core.tape import schema

    mark = schema.APPLICATION_ID.to_bytes(4)
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            is_ours = file.read(_MARKED).endswith(mark)
    except OSError:
        return False
    return is_ours and schema.is_tape(path)


def to_write(output: Path) -> Path:
    """Return the path of the tape that `-o` names; a name without a suffix gets `.tape`."""
    named = output if output.suffix or output.is_dir() else output.with_name(output.name + SUFFIX)
    return named.absolute()


def free_name(stem: str) -> Path:
    """Return the first of `stem.tape`, `stem-2.tape`, `stem-3.tape` … that does not exist."""
    if not (first := Path(stem + SUFFIX)).exists():
        return first
    numbered = (Path(f"{stem}-{i}{SUFFIX}") for i in itertools.count(2))
    return next(path for path in numbered if not path.exists())


def is_file(path: Path) -> str:
    """Return the end of an error about a missing folder, if there is a file at its path."""
    return f" It is a file: `tracefork show {shlex.quote(str(path))}`" if path.is_file() else ""


def shown(path: Path) -> str:
    """Return a path as a user would type it here, with control characters spelled out."""
    path = path.absolute()
    here = Path.cwd()
    name = printable(str(path.relative_to(here) if path.is_relative_to(here) else path))
    return f"./{name}" if name.startswith("-") else name  # Else it would be read as an option.
