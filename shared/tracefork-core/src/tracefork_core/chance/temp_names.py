"""Names of temporary files while sessions are open: each lane has a generator for them.

tempfile keeps one generator for the process, older than the session and shared by all threads. A
name that exists already is passed over, so a file that was left behind by the recorded run makes
the replay take another.
"""

from __future__ import annotations

import random
import tempfile
from typing import Any

from tracefork_core.chance.entropy import sessions
from tracefork_core.exchange.call_sites import call_site

_Names: Any = tempfile._RandomNameSequence  # type: ignore[attr-defined]  # noqa: SLF001
_real = vars(_Names)["rng"]


def put_up() -> None:
    """Let the sessions answer."""
    tempfile.gettempdir()  # Asked first, it tries names: not on somebody's lane.
    _Names.rng = property(_rng)


def take_down() -> None:
    """Leave everything as it was found."""
    _Names.rng = _real


def _rng(names: object) -> random.Random:
    entropy = sessions.here()
    if entropy is None or call_site(1, frozenset({"tempfile"}))[0] is None:
        own: random.Random = _real.fget(names)
        return own
    return entropy.generator("tempfile")
