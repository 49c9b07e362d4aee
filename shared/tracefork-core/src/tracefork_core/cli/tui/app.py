"""The view: a timeline, and below it a page about the exchange that is selected.

Nothing that takes long runs in the thread that answers keys: a thread reads pages, another looks
for errors, and each fills in what it found.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from tracefork_core.cli.display.text import printable
from tracefork_core.cli.tui import keys, pages
from tracefork_core.cli.tui.background import PAUSE, Background
from tracefork_core.cli.tui.open_run import OpenRun
from tracefork_core.cli.tui.pane import Pane
from tracefork_core.cli.tui.row_list import RowList

if TYPE_CHECKING:
    from rich.text import Text


class TapeView(Background, App[None]):
    """Shows the runs of `paths`, the first one first; `folder` is the folder they were named by."""

    CSS = """
    Screen { layout: vertical; }
    Static { height: 1; width: 1fr; }
    #head { text-style: bold; }
    #titles, #title, #footer { text-style: dim; }
    RowList { height: 2fr; }
    Pane { height: 3fr; }
    Input { height: 1; border: none; padding: 0; display: none; }
    Screen.asking #footer { display: none; }
    Screen.asking Input { display: block; }
    Screen.zoomed RowList, Screen.zoomed #titles, Screen.zoomed #finding { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(name, action, key.words, show=False)
            for key in keys.KEYS
            for name, action in key.names
        ),
        Binding("escape", "leave", "leave the prompt", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = ""

    def __init__(self, run: OpenRun, folder: Path | None) -> None:
        super().__init__(ansi_color=True)
        self.opened, self.folder = run, folder
        self.page = "transcript" if folder is None else "tree"
        self.paths: list[Path] = [run.path]
        self.n = 0
        self.history = False
        self.hits: list[int] = []
        self.loaded: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield the lines and the two parts between them."""
        yield Static(id="head", markup=False)
        yield Static(id="finding", markup=False)
        yield Static(id="titles", markup=False)
        yield RowList(self.opened)
        yield Static(id="title", markup=False)
        yield Pane()
        yield Static(id="footer", markup=False)
        yield Input(id="prompt", select_on_focus=False)

    def on_mount(self) -> None:
        """Show the first run, and begin to look for errors and for other runs."""
        self.begin_run(self.opened)
        self.find_runs()

    def begin_run(self, run: OpenRun, n: int = 0) -> None:
        """Show a run."""
        before, self.opened, self.n = self.opened, run, n
        self.hits = []
        rows = self.query_one(RowList)
        rows.show_run(run, n)
        if before is not run:
            before.close()
        self.put("head", run.title)
        self.put("finding", "looking for errors and blame …")
        self.put("titles", run.rows.head())
        self.say(keys.FOOTER)
        self.load_page()
        self.find_marks(run)

    def put(self, name: str, words: str | Text) -> None:
        """Write one of the lines."""
        text = printable(words) if isinstance(words, str) else words
        self.query_one(f"#{name}", Static).update(text, layout=False)

    def say(self, words: str) -> None:
        """Write the last line of the screen."""
        self.put("footer", words)

    def select(self, n: int) -> None:
        """Go to an exchange."""
        if not self.opened.exchanges:
            return
        self.n = max(0, min(n, len(self.opened.exchanges) - 1))
        self.query_one(RowList).cursor = self.n
        self.say(keys.FOOTER)
        if self.page in pages.OF_EXCHANGE:
            self.load_page(rest=PAUSE)

    def title_of_page(self) -> str:
        """Return the line between the two parts."""
        words = [pages.TITLES[self.page]]
        if self.page in pages.OF_EXCHANGE and self.opened.exchanges:
            words += [f"exchange {self.n} of {len(self.opened.exchanges)}"]
            if (error := self.opened.marks.errors.get(self.n)) is not None:
                words.append(f"error: {error}")
            elif word := self.opened.marks.word(self.n):
                words.append(word)
        return f"── {' · '.join(words)} ──"

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Go to a row that was clicked."""
        self.select(message.n)

    def on_row_list_wanted(self, message: RowList.Wanted) -> None:
        """Make rows that one frame had no time for."""
        self.make_rows(self.opened, message.numbers)

    def on_resize(self) -> None:
        """Lay the titles and the page out again."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        self.put("titles", self.opened.rows.head())
        self.load_page(stays=True)

    def action_move(self, way: int) -> None:
        """Go to the next exchange or the one before."""
        self.select(self.n + way)

    def action_page(self, way: int) -> None:
        """Go on by a screen."""
        self.select(self.n + way * max(1, self.query_one(RowList).size.height - 1))

    def action_edge(self, last: int) -> None:
        """Go to the first exchange or the last."""
        self.select(len(self.opened.exchanges) - 1 if last else 0)

    def action_mark(self, way: int) -> None:
        """Go to the next error or blamed step, or to the one before."""
        marks = self.opened.marks
        n = marks.next(self.n, way)
        if n is not None:
            self.select(n)
            return
        where = "after" if way > 0 else "before"
        is_read = marks.read >= len(self.opened.exchanges)
        so_far = "" if is_read else f" among the first {marks.read} exchanges (still reading)"
        self.say(f"no error and no blamed step {where} exchange {self.n}{so_far}")

    def action_hit(self, way: int) -> None:
        """Go to the next hit of the search, or to the one before."""
        later = [n for n in self.hits if n > self.n]
        earlier = [n for n in self.hits if n < self.n]
        if not self.hits:
            self.say("no hit: / searches")
        elif way > 0:
            self.select((later or self.hits)[0])
        else:
            self.select((earlier or self.hits)[-1])

    def action_run(self, way: int) -> None:
        """Open the next run, or the one before."""
        if len(self.paths) < 2:
            self.say("there is no other run here: no branch, and no other tape of the folder")
            return
        place = self.paths.index(self.opened.path) if self.opened.path in self.paths else 0
        self.open(self.paths[(place + way) % len(self.paths)], 0)

    def action_reload(self) -> None:
        """Read the tape again."""
        self.open(self.opened.path, self.n)

    def action_view(self, name: str) -> None:
        """Show another page; the same key again shows the conversation."""
        self.page = "transcript" if name == self.page else name
        self.load_page()

    def action_history(self) -> None:
        """Show or fold what was said before."""
        self.history = not self.history
        self.page = "transcript"
        self.load_page()

    def action_scroll(self, way: int) -> None:
        """Scroll the page by most of its height."""
        pane = self.query_one(Pane)
        pane.scroll_relative(y=way * max(1, pane.size.height - 2), animate=False)

    def action_zoom(self) -> None:
        """Show the page on the whole screen, or no longer."""
        self.screen.toggle_class("zoomed")

    def action_leave(self) -> None:
        """Leave the prompt, or the whole screen."""
        self.screen.remove_class("zoomed")
        self._stop_asking()

    def action_copy(self, what: str) -> None:
        """Show a command about this exchange, and copy it where the terminal can."""
        if not self.opened.exchanges:
            self.say("there is no exchange to name")
            return
        command = self.opened.fork(self.n) if what == "fork" else self.opened.show(self.n)
        self.copy_to_clipboard(command)
        words = f"copied: {command}"
        if len(words) > self.size.width:
            self.put("title", "── command ──")
            self.query_one(Pane).show(pages.wrapped(command, self.size.width - 1))
            words = "copied"
        self.say(words)

    def action_ask(self, sign: str) -> None:
        """Ask for a text to search, or for a number."""
        prompt = self.query_one(Input)
        prompt.value = sign
        self.screen.add_class("asking")
        prompt.focus()
        prompt.cursor_position = len(sign)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was asked for."""
        sign, words = event.value[:1], event.value[1:].strip()
        self._stop_asking()
        if sign == ":":
            self._go_to(words)
        elif words:
            self.search(words)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Leave the prompt when its sign is deleted."""
        if not event.value:
            self._stop_asking()

    def _stop_asking(self) -> None:
        self.screen.remove_class("asking")
        self.set_focus(None)

    def _go_to(self, words: str) -> None:
        most = len(self.opened.exchanges) - 1
        if words.isdecimal() and int(words) <= most:
            self.select(int(words))
        else:
            held = f"0 to {most}" if most >= 0 else "none"
            self.say(f"there is no exchange {words!r}: this run has {held}")

    def in_thread(self, work: Callable[[], None], group: str) -> None:
        """Run something in a thread, instead of what the same group does."""
        self.run_worker(work, group=group, thread=True, exclusive=True)


def view(path: Path, folder: Path | None) -> None:
    """Show a run until the user leaves.

    Raises:
        TapeError: the tape cannot be read.
    """
    app = TapeView(OpenRun(path, shutil.get_terminal_size().columns), folder)
    gc.freeze()  # What is loaded stays: no collection has to look at it again.
    gc.enable()
    try:
        app.run()
    finally:
        app.opened.close()
