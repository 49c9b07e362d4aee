"""`tracefork tui` in a terminal, and where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest

from .conftest import Shell

HEIGHT, WIDTH = 24, 80
PATIENCE = 60


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, shell: Shell, *words: str, **environment: str) -> None:
        command = [sys.executable, "-m", "tracefork_core.cli.main", *words]
        self.descriptor, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=shell.folder,
            env=shell.full_environment(**{"TERM": "xterm-256color", **environment}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.written = b""
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def read(self) -> bool:
        """Read what was written; return whether the command still runs."""
        ready, _, _ = select.select([self.descriptor], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:  # The command has ended.
            return False
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def until(self, is_there: Callable[[str], bool]) -> str:
        """Wait until the screen is as it should be; return it."""
        end = time.monotonic() + PATIENCE
        while not is_there(self.text):
            assert time.monotonic() < end, self.text
            assert self.read(), self.text
        return self.text

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self.descriptor, keys.encode())

    def end(self) -> int:
        """Wait for the end; return the exit code."""
        while self.read():
            pass
        return self._process.wait()

    def close(self) -> None:
        """Close the terminal; what still runs in it ends."""
        os.close(self.descriptor)
        self._process.kill()
        self._process.wait()


@contextmanager
def terminal(shell: Shell, *words: str, **environment: str) -> Iterator[Terminal]:
    """Run a command in a terminal; end it, if the test has not."""
    found = Terminal(shell, *words, **environment)
    try:
        yield found
    finally:
        found.close()


def test_a_terminal_shows_a_run_and_gives_the_screen_back(taped: Shell) -> None:
    """Rows are there before Textual is, and a key that is typed then counts."""
    with terminal(taped, "tui", "agent.tape") as shown:
        shown.until(lambda text: "reading …" in text and "▸" in text)
        assert "q quit" not in shown.text
        shown.type("j")
        text = shown.until(lambda text: "exchange 1 of 2" in text)
        assert text.splitlines()[0].startswith("agent.tape · 2 exchanges")
        assert "POST /echo 200" in text
        shown.type("y")
        shown.until(lambda text: "copied: tracefork show agent.tape 1" in text)
        assert b"\x1b]52;c;" in shown.written
        shown.type("q")
        assert shown.end() == 0
    assert b"\x1b[?1049l" in shown.written.rpartition(b"copied")[2]


@pytest.mark.parametrize("words", [("tui", "gone"), ("tui", "torn.tape"), ("tui", "empty")])
def test_what_cannot_be_read_is_one_error_on_the_usual_screen(
    taped: Shell, words: tuple[str, ...]
) -> None:
    """A missing file, a corrupt tape, a folder without tapes."""
    good = (taped.folder / "agent.tape").read_bytes()
    (taped.folder / "torn.tape").write_bytes(good[:2048] + b"\xff" * (len(good) - 2048))
    (taped.folder / "empty").mkdir()
    with terminal(taped, *words) as shown:
        code = shown.end()
        assert code == (5 if words[1] == "torn.tape" else 2)
        last = shown.written.rpartition(b"\x1b[?1049l")[2].decode()
        assert "\x1b[?1049h" not in last
        assert "✗ " in last
        assert "Traceback" not in last


def test_the_terminal_is_as_it_was(taped: Shell) -> None:
    """Echo and lines come back, after the view and after an error."""
    with terminal(taped, "tui", "agent.tape") as shown:
        before = termios.tcgetattr(shown.descriptor)
        shown.until(lambda text: "q quit" in text)
        assert termios.tcgetattr(shown.descriptor) != before
        shown.type("q")
        while termios.tcgetattr(shown.descriptor) != before:
            shown.read()
        shown.end()


def test_a_pipe_is_refused_with_what_to_type(taped: Shell) -> None:
    """Also a terminal that cannot move its cursor, and one that says nothing about itself."""
    done = taped.tracefork("tui", "agent.tape")
    assert done.exit == 2
    assert "tui needs a terminal" in done.err
    assert "`tracefork show agent.tape`" in done.err
    with terminal(taped, "tui", "agent.tape", TERM="dumb") as shown:
        assert shown.end() == 2
    assert b"this terminal cannot show a screen (TERM=dumb)" in shown.written


def test_without_the_extra_the_error_says_what_to_install(taped: Shell) -> None:
    """Textual is hidden from the command as if it were not installed."""
    taped.write(
        "hidden.py",
        "import sys; sys.modules['textual'] = None\n"
        "from tracefork_core.cli.main import main; sys.exit(main(sys.argv[1:]))\n",
    )
    done = taped.python("hidden.py", "tui", "agent.tape")
    assert done.exit == 2
    assert "the terminal view needs an extra: pip install 'tracefork-core[tui]'" in done.err


def test_a_document_needs_no_screen(taped: Shell) -> None:
    """It is the timeline of `show`; for a folder, of its newest tape."""
    shown = taped.tracefork("show", "agent.tape", "--json").document
    told = taped.tracefork("tui", "agent.tape", "--json").document
    assert told.pop("command") == "tui"
    assert told == {key: value for key, value in shown.items() if key != "command"}
    os.utime(taped.folder / "support.tape", (2**31, 2**31))
    newest = Path(taped.tracefork("tui", "--json").document["tape"])
    assert newest.name == "support.tape"
