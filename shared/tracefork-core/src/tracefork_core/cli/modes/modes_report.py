"""What a replay in a mode found, for people and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.modes.mode import CANNOT_PROVE, Mode

if TYPE_CHECKING:
    from tracefork_core.cli.modes.dry_run import DryRun
    from tracefork_core.cli.modes.verifications import Verification
    from tracefork_core.evidence.actions import Action
    from tracefork_core.evidence.patch import Patch

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Compared:
    """What a replay in a mode compared.

    Attributes:
        mode: the mode.
        actions: the actions on the tape.
        patch: what its tools changed.
        verified: what verifiers returned, then and now.
        refused: verifiers that did not run, because they may write.
        accepted: what differs from the recording, and was accepted.
    """

    mode: Mode
    actions: Sequence[Action]
    patch: Patch
    verified: Sequence[Verification] = ()
    refused: Sequence[str] = ()
    accepted: Sequence[str] = ()

    def notes(self) -> list[str]:
        """Return the lines below a verdict: what was compared, and what is not known."""
        tools = sum(action.kind == "tool" for action in self.actions)
        stops = [one.reason for one in self.actions if one.kind == "stop" and one.reason]
        live = "none of them live" if not self.accepted else "those below live"
        lines = [f"mode {self.mode}: {figures.several(tools, 'tool call')}, {live}"]
        if self.mode == Mode.HYBRID:
            lines = self._of_verifiers()
        lines += [f"! accepted: {one}" for one in self.accepted]
        if stops:
            lines.append(f"stop reason: {stops[-1]}")
        patch = self.patch
        files = figures.several(len(patch.files), "file")
        unseen = f", besides {', '.join(patch.unseen[:_SHOWN])}" if patch.unseen else ""
        lines.append(f"patch {figures.digest(patch.identity)}: {files} changed by tools{unseen}")
        lines.append(f"not proven: {CANNOT_PROVE[self.mode]}")
        return [printable(line) for line in lines]

    def document(self) -> dict[str, object]:
        """Return the same as JSON-able values."""
        return {
            "mode": self.mode.value,
            "actions": msgspec.to_builtins(list(self.actions)),
            "patch": msgspec.to_builtins(self.patch),
            "verifications": [
                {**msgspec.to_builtins(one), "verdict": one.verdict} for one in self.verified
            ],
            "not_run": list(dict.fromkeys(self.refused)),
            "accepted": list(self.accepted),
            "not_proven": CANNOT_PROVE[self.mode],
        }

    def _of_verifiers(self) -> list[str]:
        runs = sum(len(one.now) for one in self.verified)
        lines = [f"mode hybrid: {figures.several(runs, 'run')} of verifiers, no other tool"]
        for one in self.verified:
            mark = "✓" if one.verdict == "same" else "✗"
            lines.append(f"{mark} {one.tool} (exchange {one.n}): {one.words}")
        if not self.verified:
            lines.append("! no verifier was called: declare one with @tool(verifier=True)")
        lines += [
            f"! {name} was not run, because it may write: --allow-write {shlex.quote(name)}"
            for name in dict.fromkeys(self.refused)
        ]
        return lines


def print_dry_run(found: DryRun, shown: str) -> None:
    """Print a dry run for people."""
    from rich.text import Text

    console = screen.stdout()
    good = not found.problems
    mark = Text("✓ " if good else "✗ ", screen.GOOD if good else screen.BAD)
    state = "adds up" if good else figures.several(len(found.problems), "problem")
    head = f"{shown} {state} · {figures.several(found.exchanges, 'exchange')} · nothing ran"
    console.print(mark.append(printable(head), "default"), soft_wrap=True)
    for problem in found.problems[:_SHOWN]:
        console.print(f"  {printable(problem)}", soft_wrap=True)
    if len(found.problems) > _SHOWN:
        console.print(f"  … {len(found.problems) - _SHOWN} more: --json")
    for line in (
        *(f"! {one}" for one in found.unknown),
        *Compared(Mode.DRY_RUN, found.actions, found.patch).notes(),
    ):
        screen.note(console, f"  {printable(line)}")
    console.print(f"  digest {found.digest}", style=screen.DIM, soft_wrap=True)
