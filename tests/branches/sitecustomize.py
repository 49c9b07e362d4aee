"""Let coverage see all that runs, in each Python that has this folder on its path.

Audit hooks are not traced unless they ask for it. And the command line runs exit handlers while
the session is open and it has more to do: coverage's own would end the measure there.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Callable
from typing import Any

_add_hook = sys.addaudithook
_run_handlers: Callable[[], None] = atexit._run_exitfuncs


def _add_traced(hook: Callable[[str, tuple[Any, ...]], Any]) -> None:
    with contextlib.suppress(AttributeError):  # A built-in function takes no attributes.
        hook.__cantrace__ = True  # type: ignore[attr-defined]
    _add_hook(hook)


def _run_others() -> None:
    coverage = sys.modules.get("coverage")
    measured = coverage.Coverage.current() if coverage else None
    if measured is not None:
        atexit.unregister(measured._atexit)
    try:
        _run_handlers()
    finally:
        if measured is not None:
            atexit.register(measured._atexit)


sys.addaudithook = _add_traced
atexit._run_exitfuncs = _run_others
