"""Where output goes: people's text through rich, documents as JSON, never both on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, TextIO, cast

from tracefork_core.errors import UnwritableError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ours: dict[str, TextIO] = {}
"""The streams there were before an agent ran: it may close them, or put others in their place."""
_kept: TextIO | None = None
"""Where documents go, once what is printed goes to stderr."""
_is_closed = False
"""Whether stdout takes no more: what was to be written there goes nowhere."""
_has_document = False
GOOD, BAD, WARN, DIM, STRONG = "green", "red", "yellow", "dim", "bold"


def stdout() -> Console:
    """Return the console for results."""
    return _console(stderr=False)


def stderr() -> Console:
    """Return the console for notes, and for results where the agent owns stdout."""
    return _console(stderr=True)


def say_json(document: dict[str, object]) -> None:
    """Write the one document of a command to stdout.

    Non-ASCII characters are escaped: the document is as safe in a terminal as the text.
    """
    global _has_document
    _has_document = True
    _say(json.dumps(document, indent=2))


def say_line(document: dict[str, object]) -> None:
    """Write a document to stdout as a line of its own, one of many."""
    _say(json.dumps(document))


def grid(*columns: str) -> Table:
    """Return a table with a line under its titles; `>` in front of a title aligns it right.

    `~` in front names the column that gives way first when the screen is narrow.
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


@contextmanager
def stdout_kept(keep: bool = True) -> Iterator[None]:
    """Keep stdout for the result: what the agent and its children print goes to stderr.

    To the end of this process: threads of the agent print as long as they live.
    """
    if not _ours:
        _ours.update(stdout=sys.stdout, stderr=sys.stderr)
    if keep:
        _keep_stdout()
    yield
    with suppress(ValueError, AttributeError):  # It is closed, or no stream at all.
        sys.stdout.flush()  # Our notes on stderr come after what the agent said.


def _keep_stdout() -> None:
    global _kept
    if _kept is None:
        sys.stdout.flush()
        descriptor = os.dup(1)
        os.dup2(2, 1)
        _kept = open(descriptor, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: PTH123, SIM115


def give_stdout_back() -> None:
    """Let what is printed go to stdout again."""
    global _has_document, _is_closed, _kept
    _has_document = _is_closed = False
    _ours.clear()
    if _kept is not None:
        sys.stdout.flush()
        os.dup2(_kept.fileno(), 1)
        _kept.close()
        _kept = None


def takes_a_document() -> bool:
    """Return whether the one document may still be written, and would arrive."""
    return not _is_closed and not _has_document


def close_stdout() -> None:
    """Write no more to stdout: nobody reads it."""
    for stream in (_own("stdout"), _kept):
        if stream is not None:
            _close(stream)


def _close(stream: TextIO) -> None:
    """Let what is written from now on, and what waits to be written, go nowhere."""
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
    """A stream that may break off: the command goes on, and ends with the exit code it comes to."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._do(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._do(self._stream.flush)

    def _do(self, what: Callable[..., object], *words: str) -> None:
        """Write; where nobody reads, or nobody can be told, nothing is written any more.

        Raises:
            UnwritableError: it is stdout, and it cannot be written.
        """
        try:
            what(*words)
        except OSError as error:
            _close(self._stream)
            if self._stream is not _own("stderr") and not isinstance(error, BrokenPipeError):
                raise UnwritableError(
                    f"tracefork: stdout cannot be written: {error.strerror}."
                ) from error

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def stdout_to(descriptor: int) -> Iterator[None]:
    """Have what this process and its children print on stdout go to another descriptor."""
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
    """Return a standard stream for what we say, whatever an agent made of it."""
    stream: TextIO = _ours.get(name) or getattr(sys, name)
    if _is_shut(stream):
        descriptor = 1 if name == "stdout" else 2
        stream = open(descriptor, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
        _ours[name] = stream
    return stream


def _is_shut(stream: TextIO) -> bool:
    try:
        return stream.closed
    except ValueError:  # Its buffer was taken from it.
        return True


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = _own("stderr") if stderr else _kept or _own("stdout")
    if "utf" not in (stream.encoding or "").lower() and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return Console(
        file=cast(TextIO, _Lasting(stream)),
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
    )
