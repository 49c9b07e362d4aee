"""Pass the guard and the session on to Python child processes, whatever environment they get.

A child finds our `sitecustomize` first on its PYTHONPATH. One variable tells it whether to refuse
or count connections, which hosts are allowed, where to report, and how to join the session. Both
are in `os.environ` while a session is open. `subprocess.Popen` is wrapped too, for children that
get an environment of their own, and so that a child of one of several sessions joins its own.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import threading
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from tracefork_core.egress.guard import Inviting, Watch, watches_here
from tracefork_core.egress.programs import ENVIRONMENT, Report, child_name
from tracefork_core.exchange.current import is_crossing_seam

_BOOT = str(Path(__file__).parent / "boot")
_PATH = "PYTHONPATH"
_lock = threading.Lock()
_handed: list[Watch] = []
_popen_init = subprocess.Popen.__init__
_popen_arguments = inspect.signature(_popen_init)


def hand_on(watch: Watch, inviting: Inviting | None = None) -> None:
    """Pass `watch` and the invitations of `inviting` on to children that start from now on."""
    global _popen_init
    with _lock:
        watch.inviting = inviting
        if not _handed:
            _popen_init = subprocess.Popen.__init__
            subprocess.Popen.__init__ = _guarded_init  # type: ignore[method-assign]
            os.environ[_PATH] = _with_boot(os.environ)
        _handed.append(watch)
        os.environ[ENVIRONMENT] = _task(watch)


def take_back(watch: Watch) -> None:
    """Undo `hand_on`, but keep what the program itself changed meanwhile."""
    with _lock:
        _handed.remove(watch)
        if _handed:
            os.environ[ENVIRONMENT] = _task(_handed[-1])
            return
        os.environ.pop(ENVIRONMENT, None)
        if (rest := _without_boot(os.environ)) is None:
            os.environ.pop(_PATH, None)
        else:
            os.environ[_PATH] = rest
        if subprocess.Popen.__init__ is _guarded_init:
            subprocess.Popen.__init__ = _popen_init  # type: ignore[method-assign]


def announce() -> None:
    """Update the variable for processes started unseen: the door is open now."""
    with _lock:
        if _handed:
            os.environ[ENVIRONMENT] = _task(_handed[-1])


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
    return watch, given["invitation"]


def _task(watch: Watch, child: str | None = None) -> str:
    """Return the value of the variable for a child; `child` is None for one started unseen."""
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


@wraps(_popen_init)
def _guarded_init(self: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
    if _handed:
        bound = _popen_arguments.bind(self, *args, **kwargs)
        given = bound.arguments.get("env")
        environment = dict(os.environ if given is None else given)
        environment[_PATH] = _with_boot(environment)
        here = next((watch for watch in watches_here() if watch in _handed), _handed[-1])
        program, words = bound.arguments.get("executable"), bound.arguments["args"]
        # File names need not be text. `tape` has a function for that, but needs msgspec.
        name = child_name(program, words).encode("utf-8", "backslashreplace").decode()
        environment[ENVIRONMENT] = _task(here, name)
        bound.arguments["env"] = environment
        _, *args_now = bound.args
        _popen_init(self, *args_now, **bound.kwargs)
    else:
        _popen_init(self, *args, **kwargs)
