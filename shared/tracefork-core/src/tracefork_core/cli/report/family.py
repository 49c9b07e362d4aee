"""Which tapes a page shows: the one that was named first, then its parents and its branches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.tape import Tape


@dataclass(frozen=True, slots=True)
class Shown:
    """The tapes of a page, and those that cannot be read, with the reason."""

    paths: list[Path]
    parents: dict[str, str]
    unreadable: list[tuple[Path, str]]

    def place_of_parent(self, path: Path) -> int | None:
        """Return the place of a branch's parent in the page; None if it is not there."""
        parent = self.parents.get(path.name)
        names = [one.name for one in self.paths]
        return names.index(parent) if parent in names else None


def of_tape(path: Path) -> Shown:
    """Return a run with its parents and its branches.

    Raises:
        TapeError: it cannot be read.
    """
    with Tape.open(path) as tape:
        needs = tape.needs
    family, parents = [path, *(path.with_name(name) for name in needs)], {}
    for file, names in _origins(path.parent)[0].items():
        if path.name in names:
            family.append(file)
        if names:
            parents[file.name] = names[0]
    return Shown(family, parents, [])


def of_folder(folder: Path) -> Shown:
    """Return all tapes of a folder.

    Raises:
        UsageError: it holds none that can be read.
    """
    readable, unreadable = _origins(folder)
    if not readable:
        why = f" {unreadable[0][1].removeprefix('tracefork: ')}" if unreadable else ""
        raise UsageError(
            f"tracefork: there is no tape in {tape_names.shown(folder)} that can be read.{why} "
            "`tracefork record SCRIPT.py` records one."
        )
    parents = {path.name: names[0] for path, names in readable.items() if names}
    return Shown(list(readable), parents, unreadable)


def _origins(folder: Path) -> tuple[dict[Path, list[str]], list[tuple[Path, str]]]:
    """Return the tapes of a folder with the names of their parents, nearest first."""
    readable: dict[Path, list[str]] = {}
    unreadable: list[tuple[Path, str]] = []
    for path in tape_names.inside(folder):
        try:
            with Tape.open(path) as tape:
                readable[path] = tape.needs
        except TraceforkError as error:
            unreadable.append((path, str(error)))
    return readable, unreadable
