"""Answer `os.urandom` and its like from one seed, which a recording writes to the tape.

`uuid4` and `secrets` draw from `os.urandom`, so they are covered. Each call site of each lane has a
stream of bytes of its own: a background thread takes nothing from the agent, and a library that
draws once more at replay shifts only its own stream. The tape also holds how often each call site
drew. A draw beyond that counts as a miss, except those of a module while it is loaded.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections import Counter
from collections.abc import Iterable
from operator import index
from typing import Protocol

from tracefork_core.chance.draws import PerSession, observers, report_draw
from tracefork_core.chance.generators import SEED_BYTES, LaneGenerators, seeded
from tracefork_core.exchange.call_sites import KnownSites, call_site, is_loading
from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.lane import drawing_lane
from tracefork_core.tape.event import Draws, Reads

SOURCE = "entropy"
_NO_LANE = ""


class RecordedEntropy:
    """The entropy of one session: fresh, or as it was recorded.

    Attributes:
        seed: all bytes are derived from it.
        forked: whether draws are written to a branch, though a recording answers them.
        generators: the global generator of `random`, one for each lane.
        misses: how many draws the tape did not know.
    """

    def __init__(
        self,
        session: Session,
        seed: bytes,
        recorded: Draws | None = None,
        *,
        forked: bool = False,
    ) -> None:
        self.session = session
        self.seed = seed
        self.misses = 0
        self.recorded = recorded
        self.forked = forked
        # Re-entrant: a finalizer that runs in the middle of a draw may draw.
        self._lock = threading.RLock()
        self._streams = Streams(seed)
        self._named: dict[tuple[str, str], random.Random] = {}
        self._fresh: Counter[tuple[str, str]] = Counter()
        self._given: Counter[tuple[str, str]] = Counter()
        self._known = KnownSites()
        self.give(recorded.reads if recorded else ())
        self.generators = LaneGenerators(
            session, self._fallback, recorded, alone=lambda: len(sessions) < 2
        )

    def give(self, recorded: Iterable[Reads]) -> None:
        """Add the recorded numbers of draws."""
        for reads in recorded:
            if reads.source == SOURCE:
                self._known.add(reads.site)
                self._given[reads.lane, reads.site] += sum(reads.values)

    def draw(self, site: str, size: int) -> bytes:
        """Return the next `size` bytes of a call site on this lane."""
        key = (drawing_lane(self.session), self._known.named(site))
        with self._lock:
            if self.recorded is None or self.forked:
                self._fresh[key] += 1
            if self.recorded is not None:
                if self._given[key] > 0:
                    self._given[key] -= 1
                else:
                    self.misses += not is_loading()
            return self._streams.draw(*key, size)

    def generator(self, purpose: str) -> random.Random:
        """Return this lane's generator for a purpose, such as names of temporary files."""
        key = (drawing_lane(self.session), purpose)
        with self._lock:
            if key not in self._named:
                self._named[key] = seeded(self._streams.draw(*key, SEED_BYTES))
            return self._named[key]

    def of_process(self, purpose: str, size: int) -> bytes:
        """Return bytes that depend on the seed and the purpose only, not on lane or time."""
        return Streams(self.seed).draw(_NO_LANE, purpose, size)

    def fresh(self) -> list[Reads]:
        """Return how often each call site drew since the last call."""
        if not self._fresh:
            return []
        with self._lock:
            fresh, self._fresh = self._fresh, Counter()
        return [Reads(SOURCE, lane, site, [count]) for (lane, site), count in fresh.items()]

    def _fallback(self) -> random.Random:
        return seeded(self.of_process("random", SEED_BYTES))


class _Hash(Protocol):
    def copy(self) -> _Hash: ...

    def update(self, data: bytes, /) -> object: ...

    def digest(self, length: int, /) -> bytes: ...


class Streams:
    """Streams of bytes that cannot be predicted without the seed: one for each purpose."""

    def __init__(self, seed: bytes) -> None:
        self._seed = hashlib.shake_256(b"tracefork entropy 1\0" + seed)
        self._begun: dict[tuple[str, str], _Stream] = {}

    def draw(self, lane: str, site: str, size: int) -> bytes:
        """Return the next `size` bytes of the stream of a call site on a lane."""
        stream = self._begun.get((lane, site))
        if stream is None:
            stream = self._begun[lane, site] = _Stream(self._seed.copy(), (lane, site))
        return stream.draw(size)


class _Stream:
    """One stream. Each draw hashes its number, so the sizes of earlier draws do not matter."""

    __slots__ = ("_drawn", "_start")

    def __init__(self, seed: _Hash, purpose: tuple[str, str]) -> None:
        seed.update(repr(purpose).encode("utf-8", "surrogatepass"))
        self._start = seed
        self._drawn = 0

    def draw(self, size: int) -> bytes:
        block = self._start.copy()
        block.update(b"%d\0" % self._drawn)
        self._drawn += 1
        return block.digest(size)


sessions: PerSession[RecordedEntropy] = PerSession()
"""A draw finds the entropy of its session here."""

THROUGH = frozenset({"random", "secrets", "tempfile", "uuid", "numpy.random", "uuid_utils.compat"})
"""Modules that draw on behalf of their caller, which is the call site."""

real_urandom = os.urandom
_real_getrandom = getattr(os, "getrandom", None)


def urandom(size: int, /) -> bytes:
    """Return random bytes: in a session, from its entropy."""
    drawn = _drawn(index(size))
    return real_urandom(size) if drawn is None else drawn


def getrandom(size: int, flags: int = 0) -> bytes:
    """Return random bytes: in a session, from its entropy."""
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
        report_draw(SOURCE, value, frame)
    return value


OS_SWAPS: list[tuple[object, object]] = [(real_urandom, urandom)]
if _real_getrandom is not None:
    OS_SWAPS.append((_real_getrandom, getrandom))
