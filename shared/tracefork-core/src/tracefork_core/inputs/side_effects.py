"""Note which files a tool changes while it runs, and what could have changed others unseen.

An audit hook sees each file that Python opens for writing, renames or removes in the context of the
call. What it cannot see is named instead: a subprocess, or a thread that the tool starts. So a
summary without files and without such names means that Python code changed no file.

The states are those of `files`: the size, and the SHA-256 of the first MiB.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar

from tracefork_core.inputs.files import State, concerns_agent, is_quiet, quietly, state_of
from tracefork_core.tape.digest import spelled_text
from tracefork_core.tape.event import FileChange, SideEffects

_MOST = 100
"""Files of one call; more are counted."""
_MOVES = frozenset({"os.rename", "os.link", "os.symlink"})
_REMOVES = frozenset({"os.remove", "os.rmdir", "os.mkdir", "os.truncate"})
_STARTS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork"})
_THREAD = "_thread.start_new_thread"
_EVENTS = frozenset({"open", _THREAD, *_MOVES, *_REMOVES, *_STARTS})
_watch: ContextVar[Watch | None] = ContextVar("tracefork_side_effects", default=None)
_installed = False


class Watch:
    """The changes of one call of a tool, from `begin` to `end`. Safe to use from any thread.

    Args:
        mask: returns a text with the session's secrets masked.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._folder = os.getcwd()  # noqa: PTH109 - text, as in the hook
        self._before: dict[str, State] = {}
        self._unseen: dict[str, None] = {}
        self._more = 0
        self._outer: Watch | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Watch what the current context does."""
        global _installed
        if not _installed:
            _installed = True
            sys.addaudithook(_hook)
        self._outer = _watch.get()
        _watch.set(self)

    def end(self) -> SideEffects:
        """Return what was changed since `begin`."""
        if _watch.get() is self:
            _watch.set(self._outer)
        with self._lock, quietly():
            files = []
            for path, before in self._before.items():
                after = state_of(path)
                if after != before:
                    shown = path.removeprefix(self._folder.rstrip(os.sep) + os.sep)
                    name = spelled_text(self._mask(shown))
                    files.append(FileChange(name, _sha(before), _sha(after)))
            unseen = [spelled_text(self._mask(one)) for one in self._unseen]
        return SideEffects(sorted(files, key=lambda file: file.path), unseen, self._more)

    def touch(self, path: str) -> None:
        """Note the state of a file that is about to change."""
        path = os.path.normpath(os.path.join(self._folder, path))  # noqa: PTH118 - in a hook
        with self._lock:
            if path in self._before or not concerns_agent(path) or os.path.isdir(path):  # noqa: PTH112
                return
            if len(self._before) >= _MOST:
                self._more += 1
                return
            self._before[path] = state_of(path)

    def miss(self, what: str) -> None:
        """Note something whose changes cannot be seen."""
        with self._lock:
            self._unseen.setdefault(what)


def _sha(state: State) -> str | None:
    return None if state is None else state[1]


def _hook(event: str, args: tuple[object, ...]) -> None:
    # Python never removes an audit hook: outside of a tool this returns at once.
    if event not in _EVENTS or (watch := _watch.get()) is None or is_quiet():
        return
    with quietly(), suppress(OSError, TypeError, ValueError, IndexError):
        if event == "open":
            flags = args[2] if isinstance(args[2], int) else os.O_RDONLY
            if flags & (os.O_WRONLY | os.O_RDWR) and not isinstance(args[0], int):
                watch.touch(os.fsdecode(args[0]))  # type: ignore[arg-type]
        elif event in _MOVES or event in _REMOVES:
            for path in args[: 2 if event in _MOVES else 1]:
                if not isinstance(path, int):
                    watch.touch(os.fsdecode(path))  # type: ignore[arg-type]
        elif event == _THREAD:
            watch.miss("a thread")
        else:
            watch.miss(f"subprocess {_program(args)}")


def _program(args: tuple[object, ...]) -> str:
    """Return the name of the program that an audit event starts."""
    program = args[0] if args else None
    if isinstance(program, (list, tuple)):
        program = program[0] if program else None
    if isinstance(program, (str, bytes, os.PathLike)):
        return os.path.basename(os.fsdecode(program).partition(" ")[0])  # noqa: PTH119
    return "(unknown)"
