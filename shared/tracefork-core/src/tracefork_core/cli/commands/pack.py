"""`tracefork pack`: copy a run, with what it needs of its parents, into one file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def pack(
    tape: options.TapeName,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The file to write (default: TAPE-packed.tape)."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Copy a run into one file that needs no other file.

    A branch includes the exchanges that it shares with its parents. A recording that was cut off
    includes the requests that were in flight. The file is a tape: you can show, verify and replay
    it.
    """
    from tracefork_core.tape import Tape
    from tracefork_core.tape.rewrite import rewrite

    path = tape_names.find(tape)
    target = output or tape_names.free_name(f"{path.stem}-packed")
    with Tape.open(path) as opened:
        digest = rewrite(opened, target)
        exchanges, complete = len(opened.exchanges), opened.complete
    size = target.stat().st_size
    if as_json:
        screen.say_json(
            {
                "command": "pack",
                "exit": 0,
                "tape": str(path),
                "packed": str(target.absolute()),
                "exchanges": exchanges,
                "complete": complete,
                "bytes": size,
                "digest": digest,
            }
        )
        return 0
    console, shown = screen.stdout(), tape_names.shown(target)
    count, state = figures.several(exchanges, "exchange"), "" if complete else " · incomplete"
    console.print(f"● packed {shown} · {count} · {figures.size(size)}{state}", soft_wrap=True)
    console.print(f"  digest {digest}", style=screen.DIM, soft_wrap=True)
    next_command = f"tracefork unpack {shlex.quote(shown)}"
    console.print(f"  next, on the other machine: {next_command}", style=screen.DIM, soft_wrap=True)
    return 0
