"""Call sites: the function that drew a random value or read the clock, with a stable name.

A site is a module and a function in it, "agent:Agent.plan". A line number would be more precise,
but wrong as soon as a comment is added above it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import PurePath
from types import FrameType

_MAIN = "__main__"
_IMPORTING = "<frozen importlib._bootstrap>"
_OURS = "tracefork_core."
_HOOKS = (
    "tracefork_core.chance.",
    "tracefork_core.order.program_ends",
    "tracefork_core.order.spawning",
    "tracefork_core.order.start_order",
    "tracefork_core.order.waiting",
    "tracefork_core.patching.",
)
"""Our own modules on the stack between a draw and the code that draws."""


def call_site(depth: int, through: Collection[str]) -> tuple[str | None, FrameType | None]:
    """Return the name and frame of the function that draws: the innermost outside `through`.

    The name is None where tracefork itself draws. `depth` is as in `sys._getframe`, counted from
    the caller. Every draw calls this, and `sys._getframe` raises an audit event, so it is called
    once.
    """
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "?")
        if module not in through:
            if not module.startswith(_OURS):
                name = frame.f_code.co_qualname
                return f"{module}:{_around(name) if name.endswith('comp>') else name}", frame
            if not module.startswith(_HOOKS):
                return None, frame
        frame = frame.f_back
    return "?", None


def is_loading() -> bool:
    """Return whether a module is being imported here: the recorded run may have done so earlier.

    It looks at all frames, so call it only where the tape holds no value.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def drawer(depth: int, through: Collection[str]) -> FrameType | None:
    """Return the frame that `call_site` returns."""
    return call_site(depth + 1, through)[1]


def _around(comprehension: str) -> str:
    """Name the function around a comprehension, as Python 3.12 does by inlining it."""
    name = comprehension
    while name.endswith("comp>"):
        name = name.rpartition(".<locals>.")[0] or name.rpartition(".")[0] or "<module>"
    return name


class KnownSites:
    """The call sites of a tape, by the names that the tape gives them.

    A script has one name when it runs and another when it is imported: a draw in `agent.py` is at
    "__main__:plan" where that is the script, and at "agent:plan" where a test imports it.
    """

    def __init__(self, *sites: str) -> None:
        self._sites: set[str] = set()
        self._modules: set[str] = set()
        for site in sites:
            self.add(site)

    def add(self, site: str) -> None:
        """Add a site of the tape."""
        self._sites.add(site)
        self._modules.add(site.partition(":")[0])

    def named(self, site: str) -> str:
        """Return the name that the tape has for a site; the site itself if it has none."""
        if site in self._sites or not self._sites:
            return site
        module, _, function = site.partition(":")
        if module in self._modules:
            return site
        others = self._imported() if module == _MAIN else [_MAIN]
        return next((name for m in others if (name := f"{m}:{function}") in self._sites), site)

    def _imported(self) -> list[str]:
        """Return the modules of the tape that may be the one that is `__main__` here."""
        main = sys.modules.get(_MAIN)
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        name = spec.name if spec is not None else PurePath(file or "").stem
        return [m for m in sorted(self._modules) if m.rpartition(".")[2] == name.rpartition(".")[2]]
