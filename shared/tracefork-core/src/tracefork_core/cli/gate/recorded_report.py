"""What `tracefork ci record` and `tracefork ci normalize` did, for people and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.exits import DIFFERENT, SAME
from tracefork_core.cli.gate.recording import Recorded
from tracefork_core.cli.gate.text_files import TextFile

_LINES = 40


def tell_recorded(folder: Path, done: Sequence[Recorded], *, as_json: bool) -> int:
    """Print which tapes were recorded; return the status of the first agent that failed."""
    code = next((one.status for one in done if one.status), 0)
    if as_json:
        tapes = [
            {
                "name": one.name,
                "digest": one.entry.digest,
                "exchanges": one.entry.exchanges,
                "status": one.status,
                "changed": one.replaced is not None and one.replaced.digest != one.entry.digest,
            }
            for one in done
        ]
        document = {"command": "ci record", "exit": code, "folder": str(folder)}
        screen.say_json({**document, "tapes": tapes})
        return code
    console, shown = screen.stderr(), tape_names.shown(folder)
    for one in done:
        state = "recorded"
        if one.replaced is not None:
            same = one.replaced.digest == one.entry.digest
            state = "recorded again, the same" if same else "recorded again, other content"
        count = figures.several(one.entry.exchanges, "exchange")
        console.print(f"● {printable(f'{shown}/{one.name}')} · {state} · {count}", soft_wrap=True)
        if one.status:
            console.print(f"  the agent ended with status {one.status}; a check expects the same")
    quoted = shlex.quote(shown)
    following = f"  next: tracefork ci check {quoted} · git add {quoted}"
    console.print(following, style=screen.DIM, soft_wrap=True)
    return code


def tell_texts(done: Sequence[TextFile], *, only_check: bool, as_json: bool) -> int:
    """Print which texts were written, or which are not up to date; return the exit code."""
    changed = [one for one in done if one.changed]
    code = DIFFERENT if only_check and changed else SAME
    if as_json:
        files = [
            {
                "file": str(one.file),
                "bytes": one.size,
                "changed": bool(one.changed),
                "difference": one.changed,
            }
            for one in done
        ]
        screen.say_json({"command": "ci normalize", "exit": code, "files": files})
        return code
    console = screen.stdout()
    for one in done:
        state = "new" if one.is_new else "changed" if one.changed else "the same"
        mark = "✗" if only_check and one.changed else "●"
        line = f"{mark} {tape_names.shown(one.file)} · {state} · {figures.size(one.size)}"
        console.print(line, soft_wrap=True)
        if only_check:
            for changed_line in one.changed[:_LINES]:
                console.print(f"  {printable(changed_line)}", style=screen.DIM, soft_wrap=True)
    if code:
        console.print("  next: tracefork ci normalize", style=screen.DIM)
    return code
