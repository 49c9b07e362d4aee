"""Paint the first rows of a run at once, without Textual.

Loading Textual takes longer than all else: on a slow machine a second. The rows of the first screen
need nothing of it, so they are on the screen before it is loaded. The view then draws itself over
them. What is typed in the meantime waits in the terminal, unseen, and the view reads it.
"""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracefork_core.errors import TraceforkError
from tracefork_core.printable import printable
from tracefork_core.tape.contents import CORRUPT

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
_LINES = 5
"""The lines of the view that belong to neither of its parts."""


@contextmanager
def shown(path: Path, name: str) -> Iterator[None]:
    """Show the first rows of a tape while the view is loaded, and keep typed keys for it."""
    terminal = sys.__stdin__
    assert terminal is not None
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSANOW)
    gc.disable()  # Until the view is loaded, nearly all that is made stays.
    try:
        _write(_ENTER + "\r\n".join(painted(path, name, *shutil.get_terminal_size())))
        yield
    except BaseException:
        _write(_LEAVE)
        raise
    finally:
        gc.enable()
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def painted(path: Path, name: str, width: int, height: int) -> list[str]:
    """Return the lines of the first frame; without rows, if they cannot be read at once."""
    room = max(1, (height - _LINES) * 2 // 5)
    rows: list[str] = []
    # The view reads the tape again, and says what is wrong with it.
    with suppress(TraceforkError, OSError, sqlite3.Error, *CORRUPT):
        rows = _rows(path, width, room)
    first = [f"{printable(name)} · reading …", "", *rows]
    return [line[:width] for line in first][:height]


def _rows(path: Path, width: int, room: int) -> list[str]:
    from tracefork_core.cli.tui.rows import Rows
    from tracefork_core.tape.beginning import first_exchanges

    with first_exchanges(path) as exchanges:
        return Rows(exchanges[:room], width).plain()


def _write(text: str) -> None:
    """Write to the terminal, on the descriptor that Textual writes to."""
    stream = sys.__stderr__
    assert stream is not None
    stream.flush()
    os.write(stream.fileno(), text.encode("utf-8", "backslashreplace"))
