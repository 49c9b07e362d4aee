"""What one viewer of a run follows: the run, its parents, its branches, and one to compare with."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tracefork_core.cli.report import branch_strip
from tracefork_core.cli.report.document import Branch
from tracefork_core.cli.view.folder import Folder
from tracefork_core.cli.view.growing import Growing, Growth, Seen
from tracefork_core.cli.view.shelf import Shelf
from tracefork_core.comparing.diff import diff
from tracefork_core.errors import TraceforkError
from tracefork_core.tape import Tape

_OTHERS = 500
"""Runs that a page offers to compare with."""


class Followed:
    """The runs of one viewer, in the order in which the page numbers them. A context manager.

    Args:
        folder: where the tapes lie.
        shelf: what lends them.
        name: the run that the page shows.
        other: a run to compare it with; None for no comparison.
    """

    def __init__(self, folder: Folder, shelf: Shelf, name: str, other: str | None) -> None:
        self._folder, self._shelf = folder, shelf
        self._name, self._other = name, other
        self._compares = other is not None and other != name
        self._runs: dict[str, tuple[Growing, Seen]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def renew(self) -> dict[str, list[str]]:
        """Look at the folder; return the names of the runs, and of others to compare with."""
        self._folder.look()
        for name in (*self._folder.family(self._name), *([self._other] if self._other else [])):
            if name not in self._runs and (path := self._folder.find(name)) is not None:
                lent = self._stack.enter_context(self._shelf.lent(path))
                self._runs[name] = lent, Seen()
        others = [name for name in self._folder.entries() if name not in self._runs]
        return {"runs": list(self._runs), "others": others[:_OTHERS]}

    def look(self) -> tuple[list[tuple[int, Growth]], bool]:
        """Return what is new, by the number of each run, and whether there is more to read."""
        found, more = [], False
        for number, (name, (growing, seen)) in enumerate(self._runs.items()):
            more = growing.look() or more
            if (growth := growing.since(seen, parent=self._parent(name))) is not None:
                found.append((number, growth))
        return found, more

    def compare(self) -> tuple[int, Branch] | None:
        """Return how the other run differs, with its number: once, when both have ended."""
        other = self._other
        if not self._compares or other is None or not self._ended(self._name, other):
            return None
        self._compares = False
        first, second = self._runs[self._name][0].path, self._runs[other][0].path
        found = _compared(first, second)
        return None if found is None else (list(self._runs).index(other), found)

    def _ended(self, *names: str) -> bool:
        return all(name in self._runs and self._runs[name][0].has_ended for name in names)

    def _parent(self, name: str) -> int | None:
        """Return the number of a branch's parent."""
        entry = self._folder.entries().get(name)
        parent = entry.needs[0] if entry is not None and entry.needs else None
        return list(self._runs).index(parent) if parent in self._runs else None


def _compared(first: Path, second: Path) -> Branch | None:
    """Return how the second run differs from the first; None if one of them cannot be read."""
    try:
        with Tape.open(first) as one, Tape.open(second) as two:
            is_branch = two.needs[:1] == [first.name]
            return branch_strip.compared(two, first.name, diff(one, two), is_branch=is_branch)
    except TraceforkError:
        return None
