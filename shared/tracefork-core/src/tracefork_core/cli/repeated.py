"""Ask before tools run a second time that are not on the tape."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable

if TYPE_CHECKING:
    from pathlib import Path


def ask_about_tools(path: Path, *, allowed: bool, until: int | None = None) -> bool:
    """Return whether untaped tools of a tape run again: True if `allowed`, or confirmed here.

    `until` is the exchange that ends the run.

    Raises:
        UsageError: there are such tools, and no terminal to confirm on; or the user declined.
    """
    from tracefork_core.run.replay import answering
    from tracefork_core.run.untaped import check_tools, repeated_tools, untaped_words

    if allowed:
        return True
    with answering(path) as tape:
        if sys.stdin is None or not sys.stdin.isatty():
            check_tools(tape, until)
            return False
        tools = repeated_tools(tape, until)
    if tools:
        words = untaped_words(tools, "This would run {} again.")
        screen.note(screen.stderr(), f"· {printable(words)}", screen.WARN)
        if not confirmed("Run it?"):
            with answering(path) as tape:
                check_tools(tape, until)
    return bool(tools)


def confirmed(question: str) -> bool:
    """Ask on the terminal. Ctrl-D and Ctrl-C are a no: the command says how to go on."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        screen.stderr().print()
        return False
