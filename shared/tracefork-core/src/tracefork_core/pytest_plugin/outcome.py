"""What the tests with a tape did, collected from this process and from all workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.run.use_tape import used

_DEFAULT = ".pytest_cache/tapes"


@dataclass(frozen=True, slots=True)
class Event:
    """What became of one tape: recorded, failed, differs or waiting.

    Attributes:
        tape: where the tape belongs.
        new: where the tape of this run lies, if that is another place.
        lines: what differs from the tape before.
    """

    kind: str
    tape: str
    new: str = ""
    lines: list[str] = field(default_factory=list)
    is_first: bool = False


class Outcome:
    """Collects events, and the tapes that the collected tests own.

    Attributes:
        owned: the tapes of collected tests, and all that were used.
        fixtures: the names of fixtures that tests share, as their tapes are called.
        updates: whether tapes wait for their changes to be shown before they are replaced.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.updates: bool = config.getoption("--tape-update")
        self.events: list[Event] = []
        self.owned: set[str] = set()
        self.fixtures: set[str] = set()
        self._root = config.rootpath
        given = config.getoption("--tape-artifacts") or config.getini("tape_artifacts")
        self._artifacts = self._root / (given or _DEFAULT)

    def add(
        self,
        kind: str,
        tape: Path,
        new: Path | None = None,
        lines: Sequence[str] = (),
        *,
        is_first: bool = False,
    ) -> None:
        """Add an event."""
        self.events.append(Event(kind, str(tape), str(new or ""), list(lines), is_first))

    def own(self, tapes: Iterable[Path]) -> None:
        """Note tapes that belong to tests or fixtures."""
        self.owned.update(map(str, tapes))

    def aside(self, tape: Path) -> Path:
        """Return where a tape goes that does not go into its place; nothing lies there."""
        self._artifacts.mkdir(parents=True, exist_ok=True)
        if self._artifacts.parent.name == ".pytest_cache":
            ignore = self._artifacts.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
        target = self._artifacts / os.path.relpath(tape, self._root).replace("../", "")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        return target

    def document(self) -> dict[str, Any]:
        """Return everything as plain values, for another process."""
        return {
            "events": [asdict(event) for event in self.events],
            "owned": sorted(self.owned | used),
            "fixtures": sorted(self.fixtures),
        }

    def take_in(self, document: dict[str, Any]) -> None:
        """Add what another process collected."""
        self.events += [Event(**event) for event in document["events"]]
        self.owned.update(document["owned"])
        self.fixtures.update(document["fixtures"])
