"""How far long work has come: a line that changes on a terminal, else one every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracefork_core.cli import screen

_EVERY = 10.0


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that is told how far the work has come, as often as that changes."""
    console = screen.stderr()
    if console.is_terminal:
        with console.status("") as status:
            yield status.update
        return
    last = time.monotonic()

    def tell(words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            console.print(f"· {words}", style=screen.DIM, soft_wrap=True)

    yield tell


def left(began: float, done: int, of: int) -> str:
    """Return " · about 0:40 left", from how long it took so far; nothing before the first."""
    if not 0 < done < of:
        return ""
    seconds = round((time.monotonic() - began) / done * (of - done))
    return f" · about {seconds // 60}:{seconds % 60:02} left"
