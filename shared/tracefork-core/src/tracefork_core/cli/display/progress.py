"""Progress of long work: a bar on a terminal, else one line every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tracefork_core.cli.display import screen

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.spinner import Spinner

_EVERY = 10.0
_WIDTH = 32
_A_SECOND = 8


class Tell(Protocol):
    """Called with the progress whenever it changes."""

    def __call__(self, words: str, share: float | None = None, of: str = "") -> None:
        """Show the words, and a bar if `share` (0 to 1) is given."""


@dataclass(slots=True)
class _Bar:
    """What a terminal shows: a bar with its label, and the words below it."""

    spinner: Spinner
    words: str = ""
    share: float | None = None
    of: str = ""

    def __call__(self, words: str, share: float | None = None, of: str = "") -> None:
        self.words, self.share, self.of = words, share, of

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        words = Text(self.words, screen.DIM)
        if self.share is None:
            self.spinner.update(text=words)
            return self.spinner
        line = Table.grid(padding=(0, 1, 0, 0))
        bar = ProgressBar(total=1.0, completed=self.share, width=_WIDTH)
        line.add_row(bar, Text(f"{self.share * 100:3.0f} %"), Text(self.of))
        return Group(line, words)


@contextmanager
def progress() -> Iterator[Tell]:
    """Provide a function to call with the progress whenever it changes."""
    console = screen.stderr()
    if not console.is_terminal:
        yield _lines(console)
        return
    from rich.live import Live
    from rich.spinner import Spinner

    bar = _Bar(Spinner("dots"))
    # An oracle may grade what the agent prints on stdout: leave that alone.
    with Live(
        bar,
        console=console,
        refresh_per_second=_A_SECOND,
        transient=True,
        redirect_stdout=False,
    ):
        yield bar


def _lines(console: Console) -> Tell:
    last = time.monotonic()

    def tell(words: str, share: float | None = None, of: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            console.print(f"· {words}", style=screen.DIM, soft_wrap=True)

    return tell


def tell_runs(tell: Tell, began: float, name: str, done: int, of: int) -> None:
    """Show which run finished last, and how many have."""
    tell(f"{name} · {done} of {of} runs{left(began, done, of)}", done / of, "of the runs")


def left(began: float, done: int, of: int) -> str:
    """Return " · about 0:40 left" from the time taken so far; "" before the first run."""
    if not 0 < done < of:
        return ""
    return f" · about {clock((time.monotonic() - began) / done * (of - done))} left"


def clock(seconds: float) -> str:
    """Return a duration as "0:40"."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
