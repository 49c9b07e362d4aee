"""Note which files a session reads and writes, and compare those it reads at replay.

An audit hook sees each file that is opened in the code of the session, by `open`, `os.open`,
`pathlib` or `sqlite3.connect`, and in libraries too. The state of a file is its size and the
SHA-256 of its first MiB, taken right before the first read. A file that the run wrote before is no
input. What it wrote and left behind is noted when the session ends.

Not noted: files of Python, of installed packages and of the system (`_SYSTEM`), byte code, tapes,
and files that C libraries open by themselves. The modules of the agent are noted once, at the end:
a changed one is a likely cause of a divergence, and no difference by itself.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from types import FrameType

from tracefork_core.chance.draws import PerSession
from tracefork_core.exchange.caller import caller, is_users_module
from tracefork_core.inputs.leftovers import Leftovers
from tracefork_core.inputs.sources import changed_functions, functions_of
from tracefork_core.patching.bound_names import names_of
from tracefork_core.tape.digest import spelled_text
from tracefork_core.tape.surroundings import FILES, Files, FileState
from tracefork_core.tape.writer import TapeWriter

READ, WRITTEN, FOLDER, SOURCE = "read", "written", "folder", "source"
_HASHED = 1 << 20
_MAKES_TEMPORARY = {"tempfile.mkstemp": False, "tempfile.mkdtemp": True}
_EVENTS = frozenset({"open", "sqlite3.connect", *_MAKES_TEMPORARY})
_INSIDE = 1000
"""Files in a temporary folder, of which more are not compared."""
_SOURCES = 100
"""Modules of a larger agent are not noted."""
_TOLD = 3
"""The changed modules that are named."""
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/run")
_IN_MEMORY = "/dev/shm/"  # noqa: S108 - not used, but told from the devices beside it
"""A folder for files of users, as /tmp is."""
_PYTHONS = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
_PYTHONS |= {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_ELSEWHERE = tuple(folder.rstrip(os.sep) + os.sep for folder in (*_SYSTEM, *_PYTHONS))
_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_THROUGH = frozenset({"pathlib", "io", "os", "codecs", "tokenize", "shutil"})
"""Packages that open files on behalf of their callers."""
_OF_SOURCES = ("importlib", "linecache", "runpy", "inspect", "pkgutil", "tracefork_")
"""What opens a module to run or to show it, and tracefork's own files: the first part of names."""
_libraries: set[str] = set()
"""Names of modules that are not the user's: often thousands, and each recording asks for them."""

State = tuple[int, str] | None
"""The size of a file and its hash; None if it does not exist."""


class FileNotes:
    """The files of one session. Safe to use from any thread.

    Args:
        session: the session that opens them.
        mask: returns a text with the session's secrets masked.
        own: paths of tapes, which are no files of the agent.
        writes: whether they are noted on a tape.
        recorded: what the tape holds, to compare; None while recording.
        left: what that tape and its parents hold: any of them may have left a file behind.
        differences: gets a line for each file that differs.
    """

    def __init__(
        self,
        session: object,
        mask: Callable[[str], str],
        *,
        own: Iterable[str] = (),
        writes: bool = False,
        recorded: Iterable[FileState] | None = None,
        left: Iterable[FileState] = (),
        differences: list[str] | None = None,
    ) -> None:
        self.session = session
        self._mask = mask
        self._own = tuple(own)
        self._folder = _working_directory()
        self._writes = writes
        self._compares = recorded is not None
        self._recorded = {(file.how, file.path): file for file in recorded or ()}
        self._left = {file for file in left if file.how in (WRITTEN, FOLDER)}
        self._differences = differences if differences is not None else []
        self._told: dict[str, str] = {}
        self._read: dict[str, State] = {}
        self._written: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._leftovers = Leftovers(self._is_as_left, self._differences)
        self._fresh: list[FileState] = []
        self.seen: set[tuple[str, int, str]] = set()
        self._lock = threading.RLock()

    def opened(self, path: str, *, reads: bool, writes: bool) -> None:
        """Note that a file is about to be opened, unless the same was noted before."""
        name = self._shown(path)
        with self._lock:
            if reads and name not in self._read and name not in self._written:
                self._read[name] = state_of(path)
                if not os.path.isdir(path):  # noqa: PTH112 - in a hook that each open passes
                    self._note_read(name, self._read[name])
            if writes:
                self._written.setdefault(name, path)

    def temporary(self, path: str, *, folder: bool) -> None:
        """Note that `tempfile` is about to make a file or folder; free its name at replay."""
        with self._lock:
            if folder:
                self._folders[self._shown(path)] = path
            if self._compares:
                self._leftovers.make_way(path)

    def answered(self, path: str) -> None:
        """Forget how a file differs: the session answers what would be read of it."""
        name = self._shown(os.path.abspath(path))  # noqa: PTH100 - text, as below
        with self._lock:
            if (told := self._told.pop(name, None)) is not None:
                self._differences.remove(told)
            self._read.setdefault(name, None)  # Opened again, it is not compared either.

    def put_back(self) -> None:
        """Give what the recording left behind its name back."""
        with self._lock, quietly(), suppress(OSError):
            self._leftovers.put_back()

    def is_own(self, path: str) -> bool:
        """Return whether a path is that of a tape, or of a file beside it."""
        return path.startswith(self._own) if self._own else False

    def flush(self, sink: TapeWriter) -> None:
        """Write the reads since the last flush to the tape, ahead of what depends on them."""
        if self._fresh:
            with self._lock:
                fresh, self._fresh = self._fresh, []
            sink.note(FILES, aside=Files([self._as_kept(file) for file in fresh]))

    def finish(self, sink: TapeWriter) -> None:
        """Write to the tape what the run wrote and left behind, and the modules of the agent."""
        self.flush(sink)
        with self._lock, quietly():
            written = [(name, state_of(path)) for name, path in self._written.items()]
            left = [(WRITTEN, name, now) for name, now in written if now != self._read.get(name)]
            sources = [
                FileState(
                    SOURCE,
                    self._shown(path),
                    *state,
                    functions=tuple(_functions(path, state).items()),
                )
                for path in self._modules()
                if (state := state_of(path)) is not None
            ]
        files = [FileState(how, name, *state) for how, name, state in left if state is not None]
        files += sources
        files += [
            FileState(FOLDER, name)
            for name, path in self._folders.items()
            if os.path.isdir(path)  # noqa: PTH112 - as above
        ]
        if files:
            sink.note(FILES, aside=Files([self._as_kept(file) for file in files]))

    def changed_sources(self) -> list[str]:
        """Return a line for each module of the agent that has changed, with its functions."""
        found = []
        for (how, _), file in self._recorded.items():
            path = os.path.join(self._folder, file.path)  # noqa: PTH118 - as above
            with quietly():
                now = state_of(path) if how == SOURCE else None
                if now is None or now == (file.size, file.sha):
                    continue
                which = changed_functions(dict(file.functions), _functions(path, now))
            words = f": {which}" if which else ""
            found.append(f"{file.path} was changed since this was recorded{words}")
        more = [f"{len(found) - _TOLD} more modules were changed"] if len(found) > _TOLD else []
        return [*found[:_TOLD], *more]

    def _is_as_left(self, path: str) -> bool:
        """Return whether a file or a folder is exactly as the recording left it."""
        left = self._left
        if not os.path.isdir(path) or os.path.islink(path):  # noqa: PTH112, PTH114 - as above
            state = state_of(path)
            return state is not None and FileState(WRITTEN, self._kept_path(path), *state) in left
        if FileState(FOLDER, self._kept_path(path)) not in left:
            return False
        inside = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]  # noqa: PTH118
        return len(inside) <= _INSIDE and all(self._is_as_left(file) for file in inside)

    def _kept_path(self, path: str) -> str:
        return spelled_text(self._mask(self._shown(path)))

    def _note_read(self, name: str, state: State) -> None:
        site = caller(4)
        size, sha = state or (None, None)
        now = self._as_kept(FileState(READ, name, size, sha, site))
        if self._writes:
            self._fresh.append(now)
        if not self._compares:
            return
        then, written = (self._recorded.get((how, now.path)) for how in (READ, WRITTEN))
        if then is None and (written is None or state is None):
            return
        if then is None or (then.size, then.sha) != (size, sha):
            self._told[name] = _difference(then, now, is_written=written is not None)
            self._differences.append(self._told[name])

    def _as_kept(self, file: FileState) -> FileState:
        path = spelled_text(self._mask(file.path))
        site = file.site and spelled_text(self._mask(file.site))
        functions = tuple((spelled_text(self._mask(name)), sha) for name, sha in file.functions)
        return FileState(file.how, path, file.size, file.sha, site, functions)

    def _shown(self, path: str) -> str:
        """Return a path as it is noted: relative if it is in the folder of the run."""
        folder = self._folder.rstrip(os.sep) + os.sep
        return path.removeprefix(folder)

    def _modules(self) -> list[str]:
        folder = self._folder.rstrip(os.sep) + os.sep
        files = {os.path.abspath(file) for file in _files_of_users_modules()}  # noqa: PTH100 - as above
        mine = sorted(file for file in files if file.startswith(folder) and concerns_agent(file))
        return mine if len(mine) <= _SOURCES else []


def _files_of_users_modules() -> Iterator[str]:
    """Yield the files of loaded modules that are the user's, without a look at each library."""
    for key in sys.modules.keys() - _libraries:
        names = names_of(sys.modules.get(key)) or {}
        if isinstance(file := names.get("__file__"), str):
            if is_users_module(names):
                yield file
            elif key != "__main__":
                _libraries.add(key)


def _difference(then: FileState | None, now: FileState, *, is_written: bool) -> str:
    where = f" ({now.site})" if now.site else ""
    if now.size is None:
        return f"{now.path} is missing now, and was read when this was recorded{where}"
    if is_written:
        return (
            f"{now.path} is read, which the recording itself wrote{where}. To replay, restore what "
            "was there before, or delete it"
        )
    if then is None or then.size is None:
        return f"{now.path} is read, and did not exist when this was recorded{where}"
    sizes = f"{then.size} bytes then, {now.size} now" if then.size != now.size else "the same size"
    return f"{now.path} differs from what was read when this was recorded: {sizes}{where}"


def state_of(path: str) -> State:
    """Return the size of a file and the SHA-256 of its first MiB; None if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - in a hook that each open passes
            data = file.read(_HASHED)
            size = len(data) if len(data) < _HASHED else os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return None
    return size, sha256(data).hexdigest()


@lru_cache(maxsize=1024)
def _functions(path: str, state: State) -> dict[str, str]:
    """Return the functions of a module. Its state only tells the cache that it is the same."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return functions_of(file.read(_HASHED))
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=4096)
def concerns_agent(path: str) -> bool:
    """Return whether a file belongs to the user, not to Python, a package or the system."""
    return not (
        (path.startswith(_ELSEWHERE) and not path.startswith(_IN_MEMORY))
        or path.endswith((".pyc", ".so"))
        or any(folder in path for folder in _PACKAGES)
    )


notes: PerSession[FileNotes] = PerSession()
_working_directory = os.getcwd
"""The real one: while a session is open, `os.getcwd` is watched."""
_installed = False


@contextmanager
def noting(files: FileNotes) -> Iterator[None]:
    """Report to `files` what its session opens."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)
    notes.add(files)
    try:
        yield
    finally:
        notes.remove(files)


def is_quiet() -> bool:
    """Return whether this thread opens files for notes."""
    return bool(_quiet.depth)


class _Quiet(threading.local):
    """Whether this thread opens files for the notes themselves."""

    depth = 0


_quiet = _Quiet()


@contextmanager
def quietly() -> Iterator[None]:
    """Open files inside without a note of them."""
    _quiet.depth += 1
    try:
        yield
    finally:
        _quiet.depth -= 1


def _hook(event: str, args: tuple[object, ...]) -> None:
    # Python never removes an audit hook: without a session this returns at once.
    if event not in _EVENTS or not len(notes) or _quiet.depth:
        return
    if isinstance(args[0], int) or (files := notes.here()) is None:
        return
    with quietly(), suppress(OSError, TypeError, ValueError):
        path = os.fsdecode(args[0])  # type: ignore[arg-type]
        if event == "open":
            flags = args[2] if isinstance(args[2], int) else os.O_RDONLY
            _note(files, path, flags)
        elif event in _MAKES_TEMPORARY:
            if concerns_agent(path):
                files.temporary(path, folder=_MAKES_TEMPORARY[event])
        elif path and path != ":memory:":
            name = path.removeprefix("file:").partition("?")[0] if path[:5] == "file:" else path
            _note(files, name, os.O_RDWR | os.O_CREAT)


def _note(files: FileNotes, path: str, flags: int) -> None:
    key = (path, flags, "" if path[:1] == os.sep else _working_directory())
    if key in files.seen:  # Most opens are repeated; all that follows costs more than they do.
        return
    files.seen.add(key)
    path = os.path.join(key[2], path)  # noqa: PTH118 - ten times faster
    path = os.path.normpath(path)
    if not concerns_agent(path) or files.is_own(path) or _is_of_sources():
        return
    makes = bool(flags & os.O_TRUNC) or flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL
    access = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
    files.opened(path, reads=access != os.O_WRONLY and not makes, writes=access != os.O_RDONLY)


def _is_of_sources() -> bool:
    """Return whether a module is opened to be run or shown, or a file by tracefork itself."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and _module(frame).partition(".")[0] in _THROUGH:
        frame = frame.f_back
    return frame is not None and _module(frame).startswith(_OF_SOURCES)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
