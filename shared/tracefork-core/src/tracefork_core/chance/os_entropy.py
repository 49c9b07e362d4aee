"""`os.urandom` and `os.getrandom` while sessions are open: `uuid4`, `secrets` and all else."""

from __future__ import annotations

import os
from operator import index

from tracefork_core.chance.entropy import SOURCE, sessions
from tracefork_core.chance.observers import observers, sighted
from tracefork_core.exchange.call_sites import call_site

THROUGH = frozenset({"random", "secrets", "tempfile", "uuid", "numpy.random"})
"""The modules that draw for others: the call site is the one that calls them."""

real_urandom = os.urandom
_real_getrandom = getattr(os, "getrandom", None)


def urandom(size: int, /) -> bytes:
    """Return random bytes, those of the session where one runs."""
    drawn = _drawn(index(size))
    return real_urandom(size) if drawn is None else drawn


def getrandom(size: int, flags: int = 0) -> bytes:
    """Return random bytes, those of the session where one runs."""
    assert _real_getrandom is not None
    drawn = _drawn(index(size))
    return bytes(_real_getrandom(size, flags)) if drawn is None else drawn


def _drawn(size: int) -> bytes | None:
    entropy = sessions.here()
    if entropy is None or size < 0:
        return None
    where, frame = call_site(2, THROUGH)
    if where is None:
        return None
    value = entropy.draw(where, size)
    if observers:
        sighted(SOURCE, value, frame)
    return value


SWAPS: list[tuple[object, object]] = [(real_urandom, urandom)]
if _real_getrandom is not None:
    SWAPS.append((_real_getrandom, getrandom))
