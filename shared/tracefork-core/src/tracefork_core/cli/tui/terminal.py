"""Refuse a place where no screen can be shown, and say what to type instead."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec

from tracefork_core.errors import UsageError

EXTRA = "pip install 'tracefork-core[tui]'"


def check(shown: str) -> None:
    """Raise a UsageError unless a terminal view can be shown here.

    Raises:
        UsageError: Textual is not installed, there is no terminal, or it cannot move its cursor.
    """
    if find_spec("textual") is None:
        raise UsageError(f"tracefork: the terminal view needs an extra: {EXTRA}.")
    instead = f"tracefork show {shlex.quote(shown)}"
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "tracefork: tui needs a terminal, and its input or output is a file or a pipe. To "
            f"print the run: `{instead}`"
        )
    kind = os.environ.get("TERM", "")
    if kind in ("", "dumb"):
        said = f"TERM={kind}" if kind else "TERM is not set"
        raise UsageError(
            f"tracefork: this terminal cannot show a screen ({said}). To print the run: `{instead}`"
        )
