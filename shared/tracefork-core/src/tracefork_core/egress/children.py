"""Hand the guard on to Python child processes, whatever environment they are given.

A child finds our `sitecustomize` first on its PYTHONPATH and learns from one variable what to do:
"refuse" or "count", what is allowed, and where to report. `subprocess.Popen` is wrapped while a
session is open, so that a child with an environment of its own gets both as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from tracefork_core.egress.guard import Watch
from tracefork_core.egress.program import ENVIRONMENT
from tracefork_core.egress.report import Report

_BOOT = str(Path(__file__).parent / "boot")
_lock = threading.Lock()
_handed: list[tuple[Watch, dict[str, str | None]]] = []
_popen_init = subprocess.Popen.__init__


def hand_on(watch: Watch) -> None:
    """Let children that start from now on carry `watch`."""
    task = {
        "mode": watch.mode,
        "report": str(watch.report.path),
        "allow": sorted(watch.allow),
        "programs": watch.programs,
    }
    added = {ENVIRONMENT: json.dumps(task), "PYTHONPATH": _with_boot(os.environ)}
    with _lock:
        _handed.append((watch, {name: os.environ.get(name) for name in added}))
        os.environ.update(added)
        subprocess.Popen.__init__ = _guarded_init  # type: ignore[method-assign]


def take_back(watch: Watch) -> None:
    """Undo `hand_on`."""
    with _lock:
        entry = next(entry for entry in _handed if entry[0] is watch)
        _handed.remove(entry)
        for name, value in entry[1].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if not _handed:
            subprocess.Popen.__init__ = _popen_init  # type: ignore[method-assign]


def install_from_environment(task: str) -> None:
    """Watch this child process as its parent's session asked."""
    given = json.loads(task)
    Watch(
        None,
        given["mode"],
        Report(Path(given["report"])),
        allow=given["allow"],
        programs=given["programs"],
    ).start()


def _with_boot(environment: Mapping[str, str]) -> str:
    rest = environment.get("PYTHONPATH")
    return os.pathsep.join([_BOOT, *([rest] if rest else [])])


@wraps(_popen_init)
def _guarded_init(self: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
    environment = kwargs.get("env")
    if isinstance(environment, Mapping) and ENVIRONMENT not in environment:
        kwargs["env"] = {
            **environment,
            ENVIRONMENT: os.environ.get(ENVIRONMENT, ""),
            "PYTHONPATH": _with_boot(environment),
        }
    _popen_init(self, *args, **kwargs)
