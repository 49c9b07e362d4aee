"""Hold what a session reads from standard input: recorded, or given again from a tape.

The tape holds the text that was read, not the calls that read it. A replay is a stream with that
text. `stdin_stream` puts it behind `input` and `sys.stdin`.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from tracefork_core.chance.draws import PerSession
from tracefork_core.exchange.caller import caller
from tracefork_core.masking.masking import Masking
from tracefork_core.tape.surroundings import INPUT, Input, Read
from tracefork_core.tape.writer import TapeWriter

CODING, _BINARY = "utf-8", "latin-1"
NAMES = "surrogateescape"
Until = Literal["end", "line", "piece"]
"""How far a read goes: to the end of the input, of the line, or of what is there."""


class StandardInput:
    """The standard input of one session. Safe to use from any thread.

    Args:
        session: the session that reads.
        masking: masks what goes onto the tape.
        now: returns the time in nanoseconds since the epoch.
        writes: whether what is read goes onto a tape.
        recorded: what a tape gives again; None if everything is read live.
        is_live: whether a read is live although there is a tape: past the fork point.
        differences: gets a line if more is read than was recorded.
    """

    def __init__(
        self,
        session: object,
        masking: Masking,
        *,
        now: Callable[[], int],
        writes: bool,
        recorded: Sequence[Input] | None = None,
        is_live: Callable[[], bool] = lambda: False,
        differences: list[str] | None = None,
    ) -> None:
        self.session = session
        self.masking = masking
        self.gives_passwords = recorded is not None and not writes
        self._now = now
        self._writes = writes
        self._is_live = is_live
        self._has_tape = recorded is not None
        self._reads = deque(read for event in recorded or () for read in event.reads)
        self._was_empty = not self._reads
        self._rest = b""
        self._terminal = next((e.terminal for e in recorded or () if e.terminal is not None), None)
        self._said_terminal = False
        self._differences = differences if differences is not None else []
        self._is_beyond = False
        self._fresh: list[Read] = []
        self._lock = threading.RLock()

    def take(self, size: int = -1, *, until: Until = "end") -> bytes | None:
        """Return the next bytes from the tape, empty at the end; None if the read is live.

        At most `size` bytes, if that is not negative.
        """
        with self._lock:
            if not self._has_tape or self._is_live():
                return None
            taken = self._taken(size, until)
            if self._writes:
                self.add(taken, up_to_end=bool(taken) and size < 0 and until == "end")
            return taken

    def add(self, data: bytes, *, up_to_end: bool = False) -> None:
        """Put what was read live on the tape; nothing stands for the end of the input."""
        if not self._writes:
            return
        with self._lock:
            for piece in (data, b"") if up_to_end else (data,):
                text, binary = _as_text(piece)
                self._fresh.append(Read(text, self._now(), binary))

    def terminal(self, *, is_now: bool) -> bool:
        """Return whether standard input counts as a terminal, as it was recorded."""
        with self._lock:
            if self._has_tape and self._terminal is not None and not self._is_live():
                is_now = self._terminal
            if not self._said_terminal and self._writes:
                self._terminal, self._said_terminal = is_now, True
            return is_now

    def go_to(self, moment: int) -> None:
        """Continue with what was read from a `moment` of the recording on (nanoseconds)."""
        with self._lock:
            self._rest = b""
            while self._reads and self._reads[0].at < moment:
                self._reads.popleft()

    def flush(self, sink: TapeWriter) -> None:
        """Write the reads since the last flush to the tape, ahead of what depends on them."""
        if not self._fresh and not self._said_terminal:
            return
        with self._lock:
            fresh, self._fresh = self._fresh, []
            terminal = self._terminal if self._said_terminal else None
            self._said_terminal = False
        self.masking.look_around()
        reads = [self._masked(read) for read in _joined(fresh)]
        if reads or terminal is not None:
            sink.note(INPUT, aside=Input(reads, terminal))

    def _masked(self, read: Read) -> Read:
        return Read(self.masking.text(read.text), read.at, read.binary)

    def _taken(self, size: int, until: Until) -> bytes:
        taken = b""
        while size < 0 or len(taken) < size:
            if not self._rest:
                if not self._reads:
                    break
                if not self._reads[0].text:  # The end, as after Ctrl-D on a terminal.
                    if not taken or (size < 0 and until == "end"):
                        self._reads.popleft()
                    return taken
                self._rest = _as_bytes(self._reads.popleft())
            cut = self._rest.find(b"\n") + 1 if until == "line" else 0
            cut = cut or len(self._rest)
            cut = cut if size < 0 else min(cut, size - len(taken))
            taken, self._rest = taken + self._rest[:cut], self._rest[cut:]
            if until == "piece" or (until == "line" and taken.endswith(b"\n")):
                return taken
        if not taken and size:
            self._note_beyond()
        return taken

    def _note_beyond(self) -> None:
        if self._is_beyond:
            return
        self._is_beyond = True
        held = "the tape holds no standard input" if self._was_empty else "the tape holds no more"
        self._differences.append(
            f"standard input was read more often than when this was recorded, at "
            f"{caller() or 'an unknown line'}: {held}, so the read got the end of the input"
        )


def _joined(reads: Sequence[Read]) -> Iterator[Read]:
    """Join reads that follow each other, so that a secret is not cut in two."""
    last: Read | None = None
    for read in reads:
        if last is not None and last.text and read.text and last.binary == read.binary:
            last = Read(last.text + read.text, last.at, last.binary)
            continue
        if last is not None:
            yield last
        last = read
    if last is not None:
        yield last


def _as_text(data: bytes) -> tuple[str, bool]:
    """Return bytes as a text that JSON can hold, and whether they are not UTF-8."""
    try:
        return data.decode(CODING), False
    except UnicodeDecodeError:
        return data.decode(_BINARY), True


def _as_bytes(read: Read) -> bytes:
    if read.binary:
        return read.text.encode(_BINARY, "replace")
    return read.text.encode(CODING, NAMES)


def recorded_bytes(recorded: Sequence[Input]) -> bytes:
    """Return all that was read, without the ends of the input."""
    return b"".join(_as_bytes(read) for event in recorded for read in event.reads)


inputs: PerSession[StandardInput] = PerSession()
"""A read finds the standard input of its session here."""
_own_terminal: ContextVar[bool] = ContextVar("tracefork_own_terminal", default=True)


@contextmanager
def without_terminal() -> Iterator[None]:
    """Let forks inside read the recorded input past their fork points too, and not the terminal."""
    token = _own_terminal.set(False)
    try:
        yield
    finally:
        _own_terminal.reset(token)


def has_terminal() -> bool:
    """Return whether a person can be asked on standard input."""
    try:
        return _own_terminal.get() and sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # It is closed.
        return False
