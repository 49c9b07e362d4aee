"""Write the output: text for people through rich, or JSON documents; never both on stdout."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, TextIO, cast

from tracefork_core.errors import UnwritableError
from tracefork_core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ours: dict[str, TextIO] = {}
"""The standard streams from before the agent ran, which may close or replace them."""
_kept: TextIO | None = None
"""The real stdout, for documents, while everything printed is redirected to stderr."""
_is_closed = False
"""Whether nothing more can be written to stdout; output for it is discarded."""
_has_document = False
_NARROWEST = 20
GOOD, BAD, WARN, DIM, STRONG = "green", "red", "yellow", "dim", "bold"


def stdout() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def stderr() -> Console:
    """Return the console for notes, and for results of commands whose stdout is the agent's."""
    return _console(stderr=True)


def say_error(message: str) -> None:
    """Print an error for people."""
    stderr().print(f"✗ {printable(message, lines=True)}", soft_wrap=True)


def say_json(document: dict[str, object]) -> None:
    """Write the one document of a command to stdout."""
    global _has_document
    _has_document = True
    _say(_json(document, indent=2))


def say_text(text: str) -> None:
    """Write lines of printable text to stdout, as they are: not wrapped, without colour."""
    _say(text)


def say_line(document: dict[str, object]) -> None:
    """Write a document to stdout as one line, for commands that write several."""
    _say(_json(document))


def _json(document: dict[str, object], indent: int | None = None) -> str:
    """Return JSON in which all but printable ASCII is escaped: it cannot drive a terminal."""
    return json.dumps(document, indent=indent).replace("\x7f", "\\u007f")


def grid(*columns: str) -> Table:
    """Return a table with a line under its titles.

    `>` before a title aligns the column right. `~` marks the column that shrinks first on a narrow
    screen.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        header_style=DIM,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        collapse_padding=True,
    )
    for column in columns:
        gives_way = column.startswith("~")
        title = column.removeprefix("~").removeprefix(">")
        right = column.startswith(">")
        table.add_column(
            title,
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if gives_way else None,
        )
    return table


def note(console: Console, words: str, style: str = "default") -> None:
    """Print a line; on a terminal it breaks between words, and goes on below its own beginning.

    Not for commands: what is copied from a terminal must stay one line. A pipe gets one line, too.
    """
    if not _own("stderr" if console.stderr else "stdout").isatty():
        console.print(words, style=style, soft_wrap=True)
        return
    text = words.lstrip(" !·")
    begin = words.removesuffix(text)
    lines = wrap(text, max(_NARROWEST, console.width - len(begin))) or [""]
    for i, line in enumerate(lines):
        start = " " * len(begin) if i else begin
        console.print(f"{start}{line}", style=style, soft_wrap=True)


@contextmanager
def paged() -> Iterator[Console]:
    """Yield a console that prints through `$PAGER` on a terminal, or through `less`.

    Leaving the pager early ends the printing.
    """
    words = _pager() if _own("stdout").isatty() else None
    if words is None:
        yield stdout()
        return
    import subprocess

    console = stdout()
    # -F: a text that fits the screen is printed as it is. -R: colours. -X: it stays on the screen.
    environment = {"LESS": "FRX", **os.environ}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment, text=True)  # noqa: S603
    assert pager.stdin is not None
    console.file = pager.stdin
    try:
        with suppress(BrokenPipeError), pager.stdin:
            yield console
    finally:
        with suppress(KeyboardInterrupt):
            pager.wait()


def _pager() -> list[str] | None:
    """Return the words of the pager; None if it is not installed, or is switched off."""
    words = shlex.split(os.environ.get("PAGER", "less"))
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


@contextmanager
def stdout_kept(keep: bool = True) -> Iterator[None]:
    """Keep stdout for the result, and redirect what the agent and its children print to stderr.

    The redirection lasts to the end of the process, because the agent's threads may print until
    then. With `keep` false, only the current streams are remembered.
    """
    if not _ours:
        _ours.update(stdout=sys.stdout, stderr=sys.stderr)
    if keep:
        _keep_stdout()
    yield
    with suppress(ValueError, AttributeError):  # The agent may have closed or replaced it.
        sys.stdout.flush()  # So that our notes on stderr come after the agent's output.


def _keep_stdout() -> None:
    global _kept
    if _kept is None:
        sys.stdout.flush()
        descriptor = os.dup(1)
        os.dup2(2, 1)
        _kept = open(descriptor, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: PTH123, SIM115


def give_stdout_back() -> None:
    """Undo `stdout_kept`: print to stdout again."""
    global _has_document, _is_closed, _kept
    _has_document = _is_closed = False
    _ours.clear()
    if _kept is not None:
        sys.stdout.flush()
        os.dup2(_kept.fileno(), 1)
        _kept.close()
        _kept = None


def takes_a_document() -> bool:
    """Return whether the document has not been written yet, and stdout can still take it."""
    return not _is_closed and not _has_document


def close_stdout() -> None:
    """Discard all further output to stdout, because its reader is gone."""
    for stream in (_own("stdout"), _kept):
        if stream is not None:
            _close(stream)


def _close(stream: TextIO) -> None:
    """Discard what is written to a stream from now on, and what is still in its buffer."""
    global _is_closed
    _is_closed = _is_closed or stream is not _own("stderr")
    descriptor = stream.fileno()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _say(line: str) -> None:
    stream = _Lasting(_kept or _own("stdout"))
    stream.write(line + "\n")
    stream.flush()


class _Lasting:
    """A stream whose reader may go away: the command continues, and keeps its exit code."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._do(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._do(self._stream.flush)

    def _do(self, what: Callable[..., object], *words: str) -> None:
        """Write; after an error, discard further output.

        A reader that went away is no error, and an error on stderr cannot be reported.

        Raises:
            UnwritableError: stdout cannot be written.
        """
        try:
            what(*words)
        except OSError as error:
            _close(self._stream)
            if self._stream is not _own("stderr") and not isinstance(error, BrokenPipeError):
                raise UnwritableError(
                    f"tracefork: cannot write to stdout: {error.strerror}."
                ) from error

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def stdout_to(descriptor: int) -> Iterator[None]:
    """Redirect the stdout of this process and its children to another descriptor."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _own(name: Literal["stdout", "stderr"]) -> TextIO:
    """Return a standard stream for our own output, even if the agent closed or replaced it."""
    stream: TextIO = _ours.get(name) or getattr(sys, name)
    if _is_shut(stream):
        descriptor = 1 if name == "stdout" else 2
        stream = open(descriptor, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
        _ours[name] = stream
    return stream


def _is_shut(stream: TextIO) -> bool:
    try:
        return stream.closed
    except ValueError:  # The agent has detached its buffer.
        return True


def _console(*, stderr: bool) -> Console:
    from tracefork_core.cli.display.console import PrintableConsole

    stream = _own("stderr") if stderr else _kept or _own("stdout")
    if "utf" not in (stream.encoding or "").lower() and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return PrintableConsole(
        file=cast(TextIO, _Lasting(stream)),
        stderr=stderr,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
    )
