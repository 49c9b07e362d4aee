"""Call sites as a tape names them: a program has one name where it runs, another when imported.

What draws in `agent.py` is "__main__:plan" where that is the script, and "agent:plan" where it is
named `agent:main`, or is called by a test.
"""

from __future__ import annotations

import sys
from pathlib import PurePath

MAIN = "__main__"


class KnownSites:
    """The call sites of a tape."""

    def __init__(self, *sites: str) -> None:
        self._sites: set[str] = set()
        self._modules: set[str] = set()
        for site in sites:
            self.add(site)

    def add(self, site: str) -> None:
        """Take in a site."""
        self._sites.add(site)
        self._modules.add(site.partition(":")[0])

    def named(self, site: str) -> str:
        """Return what the tape calls a site, which is its own name where the tape has none."""
        if site in self._sites or not self._sites:
            return site
        module, _, function = site.partition(":")
        if module in self._modules:
            return site
        others = self._imported() if module == MAIN else [MAIN]
        return next((name for m in others if (name := f"{m}:{function}") in self._sites), site)

    def _imported(self) -> list[str]:
        """Return the modules of the tape that may be the one that is `__main__` here."""
        main = sys.modules.get(MAIN)
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        name = spec.name if spec is not None else PurePath(file or "").stem
        return [m for m in sorted(self._modules) if m.rpartition(".")[2] == name.rpartition(".")[2]]
