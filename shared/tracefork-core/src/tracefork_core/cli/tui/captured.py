"""What a command prints, as lines of the view: with its colours, and wrapped to its width."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def captured(width: int, show: Callable[[Console], None]) -> list[Text]:
    """Return the lines that a function prints on a console.

    The console spells control characters out, as that of the command line does. So the escapes that
    are read back here are those of its own colours.
    """
    from rich.text import Text

    from tracefork_core.cli.display.console import PrintableConsole

    file = io.StringIO()
    console = PrintableConsole(
        file=file,
        width=width,
        force_terminal=True,
        color_system="standard",
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        no_color=False,
    )
    show(console)
    lines: list[Text] = []
    for line in file.getvalue().splitlines():
        text = Text.from_ansi(line)
        lines += [text] if text.cell_len <= width else text.wrap(console, width)
    return lines
