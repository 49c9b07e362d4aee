"""What the view does in threads: read pages, mark errors, make rows, search, open runs.

Each thread gives way after a few milliseconds of work, so that keys are answered at once: Python
runs one thread at a time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from tracefork_core.cli.display import figures
from tracefork_core.cli.tui import marks, pages
from tracefork_core.cli.tui.open_run import OpenRun
from tracefork_core.cli.tui.pane import Pane
from tracefork_core.cli.tui.row_list import RowList
from tracefork_core.cli.tui.search import search
from tracefork_core.errors import TraceforkError

_SLICE, _REST = 0.002, 0.001
PAUSE = 0.03
"""Seconds without a key before the page of an exchange is read."""
_TELL = 0.25
"""Seconds between two lines about progress."""

if TYPE_CHECKING:
    from textual.app import App

    _Base = App[None]
else:
    _Base = object


class Background(_Base):
    """The threads of a view."""

    opened: OpenRun
    folder: Path | None
    paths: list[Path]
    hits: list[int]
    n: int
    in_thread: Callable[[Callable[[], None], str], None]
    begin_run: Callable[..., None]
    put: Callable[[str, str], None]
    say: Callable[[str], None]
    select: Callable[[int], None]
    title_of_page: Callable[[], str]
    history: bool
    page: str

    def load_page(self, *, stays: bool = False, rest: float = 0.0) -> None:
        """Read the page in a thread, unless another is wanted meanwhile; show it once it is read.

        A key that is held down wants a page for each exchange: `rest` are seconds without a key.
        """
        self.put("title", self.title_of_page())
        width = max(1, (self.size.width or shutil.get_terminal_size().columns) - 1)
        wanted = self.opened, self.page, self.n, width, self.history
        self.in_thread(partial(self._read_page, *wanted, stays=stays, rest=rest), "page")

    def _read_page(
        self,
        run: OpenRun,
        name: str,
        n: int,
        width: int,
        history: bool,
        *,
        stays: bool,
        rest: float,
    ) -> None:
        worker = get_current_worker()
        time.sleep(rest)
        if worker.is_cancelled:
            return
        try:
            lines = pages.page(name, run, n, width, history=history, folder=self.folder)
        except TraceforkError as error:
            lines = pages.problem(error)
        if not worker.is_cancelled:
            self.call_from_thread(self.query_one(Pane).show, lines, stays=stays)

    def find_marks(self, run: OpenRun) -> None:
        """Look for errors, and for what blame says."""
        self.in_thread(partial(self._find_marks, run), "marks")

    def _find_marks(self, run: OpenRun) -> None:
        is_stopped = Turns()
        told = time.monotonic()

        def pause() -> bool:
            nonlocal told
            if is_stopped():
                return True
            if time.monotonic() - told > _TELL:
                told = time.monotonic()
                self.call_from_thread(self._tell_marks, run)
            return False

        try:
            marks.find(run.tape, run.marks, pause)
            found = run.finding()
            words = f"{found.line} {found.more}".rstrip()
        except TraceforkError as error:
            words = str(error).removeprefix("tracefork: ")
        if not is_stopped():
            self.call_from_thread(self._end_marks, run, words)

    def _tell_marks(self, run: OpenRun) -> None:
        if run is self.opened:
            share = f"{run.marks.read / max(1, len(run.exchanges)):.0%}"
            errors = figures.several(len(run.marks.errors), "error")
            self.put("finding", f"looking for errors: {errors} so far, {share} read")
            self.query_one(RowList).refresh()

    def _end_marks(self, run: OpenRun, words: str) -> None:
        if run is self.opened:
            self.put("finding", words)
            self.query_one(RowList).refresh()
            if self.page == "blame":
                self.load_page(stays=True)

    def make_rows(self, run: OpenRun, numbers: list[int]) -> None:
        """Make rows that are on the screen."""
        self.in_thread(partial(self._make_rows, run, numbers), "rows")

    def _make_rows(self, run: OpenRun, numbers: list[int]) -> None:
        worker = get_current_worker()
        for n in numbers:
            if worker.is_cancelled:
                return
            run.rows.fill([n])
        self.call_from_thread(self.query_one(RowList).refresh)

    def search(self, words: str) -> None:
        """Find a text, and go to the first hit from here on."""
        self.hits = []
        self.say(f"searching {words!r} …")
        self.in_thread(partial(self._search, self.opened, words, self.n), "search")

    def _search(self, run: OpenRun, words: str, n: int) -> None:
        is_stopped = Turns()
        hits: list[int] = []
        is_there = False
        with closing(search(run.tape, words)) as found:
            for hit in found:
                if is_stopped():
                    return
                if hit is not None:
                    hits.append(hit)
                    if not is_there and hit >= n:
                        is_there = True
                        self.call_from_thread(self._go_to_hit, run, hit)
        self.call_from_thread(self._end_search, run, words, hits, is_there)

    def _go_to_hit(self, run: OpenRun, hit: int) -> None:
        if run is self.opened:
            self.hits.append(hit)
            self.select(hit)

    def _end_search(self, run: OpenRun, words: str, hits: list[int], is_there: bool) -> None:
        if run is not self.opened:
            return
        self.hits = hits
        if hits and not is_there:
            self.select(hits[0])
        count = figures.several(len(hits), "exchange")
        self.say(f"{count} with {words!r}" + (" · n next · N previous" if hits else ""))

    def find_runs(self) -> None:
        """Find the branches of the run, or the tapes of the folder."""
        self.in_thread(self._find_runs, "runs")

    def _find_runs(self) -> None:
        from tracefork_core.cli.report import family

        try:
            if self.folder is not None:
                self.paths = family.of_folder(self.folder).paths
            else:
                self.paths = family.of_tape(self.opened.path).paths
        except TraceforkError:
            return  # The run that is open stays the only one.

    def open(self, path: Path, n: int) -> None:
        """Open a run in a thread, and show it."""
        self.say(f"opening {path.name} …")
        self.in_thread(partial(self._open, path, n, self.size.width), "open")

    def _open(self, path: Path, n: int, width: int) -> None:
        worker = get_current_worker()
        try:
            run = OpenRun(path, width)
        except TraceforkError as error:
            self.call_from_thread(self.say, f"✗ {str(error).removeprefix('tracefork: ')}")
            return
        if worker.is_cancelled:
            run.close()
        else:
            self.call_from_thread(self.begin_run, run, min(n, max(0, len(run.exchanges) - 1)))


class Turns:
    """Says whether a thread has to stop, and gives way to others now and then."""

    def __init__(self) -> None:
        self._worker = get_current_worker()
        self._until = time.monotonic() + _SLICE

    def __call__(self) -> bool:
        if time.monotonic() > self._until:
            time.sleep(_REST)
            self._until = time.monotonic() + _SLICE
        return self._worker.is_cancelled
