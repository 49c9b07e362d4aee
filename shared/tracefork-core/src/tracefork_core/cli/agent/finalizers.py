"""Let go of the agent's objects, so that their `__del__` runs while the session is open.

Python does this as the interpreter ends, when the session is closed. In the same order: it collects
garbage, forgets the last error with the frames that it holds, drops all modules, and collects what
only they held. Here it is the agent's modules alone: those of libraries are needed until the
process ends, and `egress/aftermath.py` guards what their objects do.

A module that something else still refers to (a thread that runs, a signal handler) stays, as in
Python. Nor can a finalizer of a module's object import anything, not even a loaded module. So most
HTTP clients fail there, and must fail in a recording too.
"""

from __future__ import annotations

import builtins
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from tracefork_core.cli.agent.ending import Ending, leave_us_out
from tracefork_core.exchange.caller import is_users_module
from tracefork_core.exchange.current import is_crossing_seam

_OURS = "tracefork_"


def let_go(ending: Ending, *, forget: bool) -> None:
    """Finalize the objects of the agent, in Python's order.

    `forget` tells to forget the frames of its error, too, which then cannot be shown any more.
    """
    gc.collect()
    if forget:
        ending.forget_frames()
    for name in [name for name, module in sys.modules.items() if _is_the_agents(module)]:
        sys.modules[name] = _stand_in(name, sys.modules[name])
    with _imports_have_ended():
        gc.collect()


def _stand_in(name: str, module: ModuleType) -> ModuleType:
    """Return what tells the name and the file of a module: both are still asked for."""
    stand_in = ModuleType(name)
    if (file := getattr(module, "__file__", None)) is not None:
        stand_in.__file__ = file
    return stand_in


def _is_the_agents(module: object) -> bool:
    return isinstance(module, ModuleType) and is_users_module(vars(module))


@contextmanager
def _imports_have_ended() -> Iterator[None]:
    """Refuse imports as the ending interpreter does, except those of tracefork itself."""
    import_ = builtins.__import__

    def refuse(*args: Any, **kwargs: Any) -> ModuleType:
        if _is_for_tracefork(sys._getframe(1)):
            return import_(*args, **kwargs)
        raise ImportError("sys.meta_path is None, Python is likely shutting down")

    def without_us(unraisable: sys.UnraisableHookArgs) -> object:
        if unraisable.exc_value is not None:
            leave_us_out(unraisable.exc_value)
        return hook(unraisable)

    hook = sys.unraisablehook
    builtins.__import__, sys.unraisablehook = refuse, without_us
    try:
        yield
    finally:
        builtins.__import__, sys.unraisablehook = import_, hook


def _is_for_tracefork(frame: FrameType | None) -> bool:
    """Return whether tracefork has called the code that imports, and no live call of a library."""
    if is_crossing_seam():
        return False
    while frame is not None and frame.f_globals is not globals():
        if str(frame.f_globals.get("__name__")).startswith(_OURS):
            return True
        frame = frame.f_back
    return False
