"""Find the tape a name means, and a free name for a new one."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

from tracefork_core.cli.agent import command_store
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

SUFFIX = ".tape"
_MARKED = 72
"""Bytes of a file of SQLite up to the end of its application id."""


def find(name: str) -> Path:
    """Return the path of the tape that is meant, absolute.

    `name` is a path, a path without its suffix, `last` for the tape recorded last on this machine,
    or the name of a tape recorded on this machine from anywhere.

    Raises:
        UsageError: nothing of that name is known.
    """
    for path in (Path(name), Path(name + SUFFIX)):
        if path.is_file():
            return path.absolute()
    if name and Path(name).is_dir():
        raise UsageError(
            f"tracefork: {name} is a folder, not a tape. `tracefork ls {shlex.quote(name)}` lists "
            "the tapes in it."
        )
    known = [run for run in command_store.runs() if run.path.is_file()]
    if name != "last":
        known = [run for run in known if name in (run.path.stem, run.path.name)]
    if known:
        return max(known, key=lambda run: run.recorded).path
    if name == "last":
        raise UsageError(
            "tracefork: nothing recorded on this machine is still there to be `last`. Record "
            "something: tracefork record SCRIPT.py"
        )
    raise UsageError(
        f"tracefork: no tape at {name}, and none of that name was recorded on this machine. "
        "`tracefork ls` lists the tapes of a folder."
    )


def inside(folder: Path) -> list[Path]:
    """Return the tapes of a folder."""
    return sorted(path for path in folder.glob("*") if is_tape(path))


def is_tape(path: Path) -> bool:
    """Return whether something calls itself a tape, by its name or by its first bytes."""
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


def free_name(stem: str) -> Path:
    """Return `stem.tape`, or the first of `stem-2.tape`, `stem-3.tape` … that is free."""
    if not (first := Path(stem + SUFFIX)).exists():
        return first
    numbered = (Path(f"{stem}-{i}{SUFFIX}") for i in itertools.count(2))
    return next(path for path in numbered if not path.exists())


def is_file(path: Path) -> str:
    """Return what to say of a path where a folder was to be, if it is a file; else nothing."""
    return f" It is a file: tracefork show {shlex.quote(str(path))}" if path.is_file() else ""


def shown(path: Path) -> str:
    """Return a path as a person would type it here; the name may be a stranger's."""
    path = path.absolute()
    here = Path.cwd()
    words = printable(str(path.relative_to(here) if path.is_relative_to(here) else path))
    return f"./{words}" if words.startswith("-") else words  # Or it would be an option.
