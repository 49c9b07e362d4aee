"""What a replay in a mode found, for people and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
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


def notes(
    mode: Mode,
    actions: Sequence[Action],
    patch: Patch,
    verified: Sequence[Verification] = (),
    refused: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> list[str]:
    """Return the lines below a verdict: what was compared, and what is not known."""
    tools = sum(action.kind == "tool" for action in actions)
    stops = [action.reason for action in actions if action.kind == "stop" and action.reason]
    live = "none of them live" if not accepted else "those below live"
    lines = [f"mode {mode}: {figures.several(tools, 'tool call')}, {live}"]
    if mode == Mode.HYBRID:
        runs = sum(len(one.now) for one in verified)
        lines = [f"mode hybrid: {figures.several(runs, 'run')} of verifiers, no other tool"]
        lines += [f"{_mark(one)} {one.tool} (exchange {one.n}): {one.words}" for one in verified]
        if not verified:
            lines.append("! no verifier was called: declare one with @tool(verifier=True)")
        lines += [
            f"! {name} was not run, because it may write: --allow-write {shlex.quote(name)}"
            for name in dict.fromkeys(refused)
        ]
    lines += [f"! accepted: {one}" for one in accepted]
    if stops:
        lines.append(f"stop reason: {stops[-1]}")
    files = figures.several(len(patch.files), "file")
    unseen = f", besides {', '.join(patch.unseen[:_SHOWN])}" if patch.unseen else ""
    lines.append(f"patch {figures.digest(patch.identity)}: {files} changed by tools{unseen}")
    lines.append(f"not proven: {CANNOT_PROVE[mode]}")
    return [printable(line) for line in lines]


def _mark(one: Verification) -> str:
    return "✓" if one.verdict == "same" else "✗"


def document(
    mode: Mode,
    actions: Sequence[Action],
    patch: Patch,
    verified: Sequence[Verification] = (),
    refused: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> dict[str, object]:
    """Return the same as JSON-able values."""
    return {
        "mode": mode.value,
        "actions": msgspec.to_builtins(list(actions)),
        "patch": msgspec.to_builtins(patch),
        "verifications": [{**msgspec.to_builtins(one), "verdict": one.verdict} for one in verified],
        "not_run": list(dict.fromkeys(refused)),
        "accepted": list(accepted),
        "not_proven": CANNOT_PROVE[mode],
    }


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
        *notes(Mode.DRY_RUN, found.actions, found.patch),
    ):
        screen.note(console, f"  {printable(line)}")
    console.print(f"  digest {found.digest}", style=screen.DIM, soft_wrap=True)
