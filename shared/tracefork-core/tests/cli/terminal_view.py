"""Open the terminal view on a tape, press keys, and read its screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tracefork_core.cli.tui.app import TapeView
from tracefork_core.cli.tui.open_run import OpenRun

WIDTH, HEIGHT = 80, 24
PATIENCE = 20
KEYS = {"?": "question_mark", "/": "slash", ":": "colon", " ": "space", "-": "minus"}
KEYS |= {"[": "left_square_bracket", "]": "right_square_bracket", "\n": "enter"}


@dataclass(frozen=True)
class Viewed:
    """A view that is open."""

    view: TapeView
    pilot: Pilot[None]

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        strips = self.view.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)

    @property
    def selected(self) -> str:
        """The row that is selected."""
        (line,) = (line for line in self.lines if line.startswith("▸"))
        return line

    async def press(self, keys: str) -> None:
        """Press one key after another."""
        await self.pilot.press(*(KEYS.get(key, key) for key in keys))

    async def rest(self) -> None:
        """Wait until no thread of the view reads anything."""
        await self.view.workers.wait_for_complete()
        await self.pilot.pause()

    async def until(self, words: str) -> str:
        """Wait until words are on the screen; return the screen."""
        return await self.wait(lambda: words in self.text, words)

    async def wait(self, is_there: Callable[[], bool], words: str = "it") -> str:
        """Wait until something is so; return the screen."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not is_there():
                    await self.pilot.pause(0.01)
        except TimeoutError:
            pytest.fail(f"{words!r} did not appear:\n{self.text}")
        return self.text


@asynccontextmanager
async def viewed(
    path: Path, *, folder: Path | None = None, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> AsyncIterator[Viewed]:
    """Open a tape in a view without a terminal, and close it again."""
    view = TapeView(OpenRun(path, size[0]), folder)
    try:
        async with view.run_test(size=size) as pilot:
            yield Viewed(view, pilot)
    finally:
        view.opened.close()
