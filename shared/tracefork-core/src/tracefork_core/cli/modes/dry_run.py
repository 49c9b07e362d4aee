"""`tracefork replay --mode dry-run`: check that a tape adds up, without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracefork_core.cli.exits import SAME
from tracefork_core.errors import TapeError
from tracefork_core.evidence.actions import Action, actions
from tracefork_core.evidence.consistency import problems, unknown
from tracefork_core.evidence.patch import Patch, patch_of
from tracefork_core.tape import Tape


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run found: what does not add up, and what the tape is no evidence for."""

    digest: str
    exchanges: int
    actions: list[Action]
    patch: Patch
    problems: list[str]
    unknown: list[str]

    @property
    def exit(self) -> int:
        """0 if the tape adds up, else the code of a bad tape."""
        return TapeError.exit_code if self.problems else SAME


def dry_run(path: Path) -> DryRun:
    """Read a tape, and check it.

    Raises:
        TapeError: it cannot be read.
    """
    with Tape.open(path) as tape:
        found = list(problems(tape))
        done = actions(tape)
        return DryRun(tape.digest, len(tape.exchanges), done, patch_of(done), found, unknown(tape))
