"""Put a session's standard input behind `input`, `sys.stdin` and `getpass`.

`sys.stdin` is replaced by an object that passes everything but reads on, so `input` still edits
lines on a terminal: it finds the real descriptor there and reads from the terminal by itself. So
`input` is replaced, too.

What `getpass` returns is never recorded: it becomes a secret of the session while recording, and a
replay returns its placeholder.
"""

from __future__ import annotations

import builtins
import getpass
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tracefork_core.inputs.standard_input import CODING, NAMES, StandardInput, Until, inputs
from tracefork_core.masking.redactor import placeholder
from tracefork_core.patching.bound_names import Swaps
from tracefork_core.patching.patch import Patches, Shared

TYPED_SECRET = "TYPED_PASSWORD"  # noqa: S105 - the name of what getpass returns


@contextmanager
def reading(standard_input: StandardInput) -> Iterator[None]:
    """Answer or record what the code of its session reads from standard input."""
    _patches.on()
    inputs.add(standard_input)
    try:
        yield
    finally:
        inputs.remove(standard_input)
        _patches.off()


class _Below(threading.local):
    """Whether this thread reads inside `input` or `getpass`, which record, or do not, by itself."""

    depth = 0


_below = _Below()


@contextmanager
def _inside() -> Iterator[None]:
    _below.depth += 1
    try:
        yield
    finally:
        _below.depth -= 1


def _here() -> StandardInput | None:
    return None if _below.depth else inputs.here()


class _Stream:
    """A text or binary stream: reads are recorded or given; everything else is the real one's."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if line := self.readline():
            return line
        raise StopIteration

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self._real.close()

    def readline(self, size: int | None = -1, /) -> Any:
        return self._read("readline", size, "line")

    def read(self, size: int | None = -1, /) -> Any:
        return self._read("read", size, "end")

    def readlines(self, hint: int | None = -1, /) -> list[Any]:
        lines, total = [], 0
        for line in self:
            lines.append(line)
            total += len(line)
            if hint is not None and 0 < hint <= total:
                break
        return lines

    def isatty(self) -> bool:
        is_now = bool(self._real.isatty())
        standard_input = _here()
        return is_now if standard_input is None else standard_input.terminal(is_now=is_now)

    def _read(self, method: str, size: int | None, until: Until) -> Any:
        size = -1 if size is None else size
        standard_input = _here() if size else None  # To read nothing tells text from bytes.
        if standard_input is None:
            return getattr(self._real, method)(size)
        given = self._take(standard_input, size, until)
        if given is None:
            given = getattr(self._real, method)(size)
            up_to_end = bool(given) and size < 0 and until == "end"
            standard_input.add(self._encoded(given), up_to_end=up_to_end)
        return given

    def _take(self, standard_input: StandardInput, size: int, until: Until) -> Any:
        raise NotImplementedError

    def _encoded(self, value: Any) -> bytes:
        raise NotImplementedError


class _Text(_Stream):
    def __init__(self, real: Any) -> None:
        super().__init__(real)
        self._rest = ""

    @property
    def buffer(self) -> _Binary:
        return _Binary(self._real.buffer)

    def _take(self, standard_input: StandardInput, size: int, until: Until) -> str | None:
        # Characters are counted here and bytes on the tape: one at a time, where it matters.
        if size < 0:
            data = standard_input.take(until=until)
            return None if data is None else _decoded(data)
        text = ""
        while len(text) < size and not (until == "line" and text.endswith("\n")):
            data = _character(standard_input)
            if data is None:
                return None
            if not data:
                break
            text += _decoded(data)
        return text

    def _encoded(self, value: str) -> bytes:
        return value.encode(CODING, NAMES)


class _Binary(_Stream):
    def _take(self, standard_input: StandardInput, size: int, until: Until) -> bytes | None:
        return standard_input.take(size, until=until)

    def _encoded(self, value: bytes) -> bytes:
        return value

    def read1(self, size: int = -1, /) -> Any:
        return self._read("read1", size, "piece")

    def readinto(self, target: Any, /) -> int:
        view = memoryview(target).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


def _character(standard_input: StandardInput) -> bytes | None:
    """Take one character: in UTF-8 its first byte says how many follow."""
    data = standard_input.take(1)
    if not data or data[0] < 0xC0:
        return data
    more = 1 + (data[0] >= 0xE0) + (data[0] >= 0xF0)
    return data + (standard_input.take(more) or b"")


def _decoded(data: bytes) -> str:
    return data.decode(CODING, NAMES).replace("\r\n", "\n")


def _asking(original: Callable[..., str]) -> Callable[..., str]:
    @wraps(original)
    def ask(prompt: object = "", /) -> str:
        standard_input = _here()
        if standard_input is None:
            return original(prompt)
        given = standard_input.take(until="line")
        if given is None:
            return _asked_live(standard_input, original, prompt)
        sys.stdout.write(str(prompt))
        sys.stdout.flush()
        if not given:
            raise EOFError("EOF when reading a line")
        return _decoded(given).removesuffix("\n")

    return ask


def _asked_live(standard_input: StandardInput, original: Callable[..., str], prompt: object) -> str:
    try:
        with _inside():
            line = original(prompt)
    except EOFError:
        standard_input.add(b"")
        raise
    standard_input.add(f"{line}\n".encode(CODING, NAMES))
    return line


def _secretly(original: Callable[..., str]) -> Callable[..., str]:
    @wraps(original)
    def ask(*args: Any, **kwargs: Any) -> str:
        standard_input = inputs.here()
        if standard_input is None:
            return original(*args, **kwargs)
        if standard_input.gives_passwords:
            return placeholder(TYPED_SECRET)
        with _inside():
            typed = original(*args, **kwargs)
        standard_input.masking.take_in({TYPED_SECRET: typed})
        return typed

    return ask


_ask = _asking(builtins.input)
_swaps = Swaps([(builtins.input, _ask), (getpass.getpass, _secretly(getpass.getpass))])


def _put_in(patches: Patches) -> None:
    if sys.stdin is not None:
        patches.replace(sys, "stdin", _Text(sys.stdin))
    patches.switch(_swaps.put_in, _swaps.take_out)
    if builtins.input is not _ask:  # A notebook has an `input` of its own.
        patches.wrap(builtins, "input", _asking)


_patches = Shared(_put_in)
