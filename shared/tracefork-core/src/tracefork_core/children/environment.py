"""Pass the guard and the session on to Python child processes, whatever environment they get.

A child finds our `sitecustomize` first on its PYTHONPATH. One variable tells it whether to refuse
or count connections, which hosts are allowed, where to report, and how to join the session.

A session with process scope puts both into `os.environ`. Another session must not: other work of
the process starts programs too. So the functions that start programs are wrapped. `Popen` gets an
environment with both; the others find them in `os.environ` for the length of their call.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from tracefork_core.egress.guard import Inviting, Watch, program_starts, watches_here
from tracefork_core.egress.programs import (
    ENVIRONMENT,
    Report,
    child_name,
    is_guarded_python,
    must_arrive,
    program_name,
)
from tracefork_core.exchange.current import is_crossing_seam
from tracefork_core.patching.on_import import OnImport
from tracefork_core.patching.patch import Patches, Shared

_BOOT = str(Path(__file__).parent / "boot")
_PATH = "PYTHONPATH"
_STARTERS = ("system", "posix_spawn", "posix_spawnp", "execv", "execve")
"""Functions of `os` that start a program; all others there end in one of these or in `Popen`."""
_MULTIPROCESSING = "multiprocessing.util"
"""Its `spawnv_passfds` starts spawned processes and the fork server."""
_lock = threading.RLock()
_starts = itertools.count()
_handed: list[Watch] = []
_announced: list[Watch] = []
"""The watches in `os.environ`; the last one counts."""
_popen_arguments = inspect.signature(subprocess.Popen.__init__)


def hand_on(watch: Watch, inviting: Inviting | None = None, *, everywhere: bool = True) -> None:
    """Pass a watch and the invitations of `inviting` on to children that start from now on.

    `everywhere` passes them to every child of this process, not only to those of its session.
    """
    watch.inviting = inviting
    _patches.on()
    with _lock:
        _handed.append(watch)
        if everywhere:
            _announce(watch)


def take_back(watch: Watch) -> None:
    """Undo `hand_on`, but keep what the program itself changed meanwhile."""
    with _lock:
        _handed.remove(watch)
        if watch in _announced:
            _withdraw(watch)
    _patches.off()


def announce(*, everywhere: bool = False) -> None:
    """Update the variable for processes started unseen: the door is open now.

    `everywhere` puts in the latest watch if there is none: a forked child is of one session.
    """
    with _lock:
        if everywhere and _handed and not _announced:
            _announce(_handed[-1])
        elif _announced:
            os.environ[ENVIRONMENT] = _task(_announced[-1])


def _announce(watch: Watch) -> None:
    if not _announced:
        os.environ[_PATH] = _with_boot(os.environ)
    _announced.append(watch)
    os.environ[ENVIRONMENT] = _task(watch)


def _withdraw(watch: Watch) -> None:
    _announced.remove(watch)
    if _announced:
        os.environ[ENVIRONMENT] = _task(_announced[-1])
        return
    os.environ.pop(ENVIRONMENT, None)
    if (rest := _without_boot(os.environ)) is None:
        os.environ.pop(_PATH, None)
    else:
        os.environ[_PATH] = rest


@contextmanager
def _announced_here() -> Iterator[None]:
    """Have the watch of this code's session in `os.environ`."""
    watch = _watch_here()
    if watch is None or watch in _announced:
        yield
        return
    with _lock:
        if watch.inviting is not None and not is_crossing_seam():
            watch.inviting.open()
        _announce(watch)
    try:
        yield
    finally:
        with _lock:
            _withdraw(watch)


def _watch_here() -> Watch | None:
    return next((watch for watch in _handed if watch in watches_here()), None)


def _put_in(patches: Patches) -> None:
    patches.wrap(subprocess.Popen, "__init__", _guarded)
    for name in _STARTERS:
        if hasattr(os, name):
            patches.wrap(os, name, _starter)
    if (posix := sys.modules.get("_posixsubprocess")) is not None:
        patches.wrap(posix, "fork_exec", _raw_starter)

    def wrap_multiprocessing() -> None:
        patches.wrap(sys.modules[_MULTIPROCESSING], "spawnv_passfds", _starter)

    if _MULTIPROCESSING in sys.modules:
        wrap_multiprocessing()
    else:
        on_import = OnImport(_MULTIPROCESSING, wrap_multiprocessing)
        patches.switch(on_import.on, on_import.off)


_patches = Shared(_put_in)


def _raw_starter(start: Callable[..., Any]) -> Callable[..., Any]:
    """Name what is started past `subprocess`, which raises no audit event."""

    @wraps(start)
    def start_named(words: Any, executables: Any, *args: Any) -> Any:
        given = ["", words, None, None]
        guarded = is_guarded_python("subprocess.Popen", given)
        program_starts(program_name("subprocess.Popen", given), guarded=guarded)
        with _announced_here():
            return start(words, executables, *args)

    return start_named


def _starter(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def start_announced(*args: Any, **kwargs: Any) -> Any:
        with _announced_here():
            return start(*args, **kwargs)

    return start_announced


def install_from_environment(task: str) -> tuple[Watch, dict[str, object] | None]:
    """Watch this child process as its parent's session asks; return the session's invitation."""
    given = json.loads(task)
    watch = Watch(
        None,
        given["mode"],
        Report(Path(given["report"])),
        allow=given["allow"],
        programs=given["programs"],
    )
    watch.door = given["door"]
    watch.below_seam = given["below_seam"]
    watch.start()
    if given["start"] is not None:
        watch.report.arrive(given["start"])
    return watch, given["invitation"]


def _task(watch: Watch, child: str | None = None, start: str | None = None) -> str:
    """Return the value of the variable for a child.

    `child` is the name of its lane, None for one started unseen. `start` is what it reports as soon
    as it has loaded the guard.
    """
    inviting, below = watch.inviting, child is not None and is_crossing_seam()
    if inviting is None or below:
        invitation = None
    else:
        invitation = inviting.standing() if child is None else inviting.invite(child)
    task = {
        "mode": watch.mode,
        "report": str(watch.report.path),
        "allow": sorted(watch.allow),
        "programs": watch.programs,
        "door": watch.door,
        "below_seam": below,
        "start": start,
        "invitation": None if invitation is None else invitation.spelled(),
    }
    return json.dumps(task)


def _with_boot(environment: Mapping[str, str]) -> str:
    rest = _without_boot(environment)
    return _BOOT if rest is None else os.pathsep.join([_BOOT, rest])


def _without_boot(environment: Mapping[str, str]) -> str | None:
    """Return the program's own PYTHONPATH, or None."""
    first, separator, rest = environment.get(_PATH, _BOOT).partition(os.pathsep)
    if first == _BOOT:
        return rest if separator else None
    return environment[_PATH]


def _guarded(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def guarded(self: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
        watch = _watch_here()
        if watch is None and not _announced:
            init(self, *args, **kwargs)
            return
        bound = _popen_arguments.bind(self, *args, **kwargs)
        given = bound.arguments.get("env")
        environment = dict(os.environ if given is None else given)
        if watch is None:
            # Other work, while a starter of a session has its variables in `os.environ`.
            environment.pop(ENVIRONMENT, None)
            if (rest := _without_boot(environment)) is None:
                environment.pop(_PATH, None)
            else:
                environment[_PATH] = rest
        else:
            environment[_PATH] = _with_boot(environment)
            program, words = bound.arguments.get("executable"), bound.arguments["args"]
            # File names need not be text. `tape` has a function for that, but needs msgspec.
            name = child_name(program, words).encode("utf-8", "backslashreplace").decode()
            start = f"{os.getpid()}.{next(_starts)}"
            environment[ENVIRONMENT] = _task(watch, name, start)
        bound.arguments["env"] = environment
        _, *args_now = bound.args
        if (
            watch is None
            or bound.arguments.get("shell")
            or is_crossing_seam()
            or not must_arrive(program, words, environment)
        ):
            init(self, *args_now, **bound.kwargs)
            return
        # A program that is named like Python may be another one: the guard tells that it is there.
        watch.report.await_arrival(start, program_name("subprocess.Popen", [program, words]))
        try:
            init(self, *args_now, **bound.kwargs)
        except BaseException:
            watch.report.arrive(start)  # Nothing was started.
            raise

    return guarded
