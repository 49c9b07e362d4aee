"""`tracefork tui`: look at a run in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def tui(
    tape: Annotated[
        str,
        typer.Argument(
            metavar="[TAPE|FOLDER]",
            help="A tape, a branch, or a folder of tapes; `last` works (default: this folder).",
        ),
    ] = ".",
    as_json: options.AsJson = False,
) -> int:
    """Look at a run in the terminal: timeline, conversation, difference, blame, branches.

    `?` lists the keys. With --json it prints what `tracefork show --json` or `ls --json` prints.
    """
    folder = Path(tape).absolute() if Path(tape).is_dir() else None
    path = _newest(folder) if folder is not None else tape_names.find(tape)
    if as_json:
        _print(path)
        return 0
    from tracefork_core.cli.tui import terminal

    terminal.check(tape_names.shown(path))
    from tracefork_core.cli.tui import first_frame

    with first_frame.shown(path, tape_names.shown(path)):
        from tracefork_core.cli.tui.app import view

        view(path, folder)
    return 0


def _newest(folder: Path) -> Path:
    """Return the tape of a folder that was written last.

    Raises:
        UsageError: no tape of it can be read.
    """
    from tracefork_core.cli.report import family

    return max(family.of_folder(folder).paths, key=lambda path: path.stat().st_mtime)


def _print(path: Path) -> None:
    from tracefork_core.cli.display import timeline
    from tracefork_core.tape import Tape

    with Tape.open(path) as opened:
        screen.say_json({"command": "tui", "exit": 0, **timeline.document(opened)})
