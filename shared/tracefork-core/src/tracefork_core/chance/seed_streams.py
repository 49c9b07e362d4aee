"""Bytes from a seed: one stream for each purpose, none of which tells anything of another."""

from __future__ import annotations

import hashlib
import random
from typing import Protocol

SEED_BYTES = 32


class _Hash(Protocol):
    def copy(self) -> _Hash: ...

    def update(self, data: bytes, /) -> object: ...

    def digest(self, length: int, /) -> bytes: ...


class Streams:
    """Streams of bytes that nobody can foresee without the seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = hashlib.shake_256(b"tracefork entropy 1\0" + seed)
        self._begun: dict[tuple[str, str], _Stream] = {}

    def draw(self, lane: str, site: str, size: int) -> bytes:
        """Return the next `size` bytes of the stream of a call site on a lane."""
        stream = self._begun.get((lane, site))
        if stream is None:
            stream = self._begun[lane, site] = _Stream(self._seed.copy(), (lane, site))
        return stream.draw(size)


def seeded(seed: bytes) -> random.Random:
    """Return a generator that gives the same values for the same seed."""
    return random.Random(int.from_bytes(seed))  # noqa: S311 - it stands in for just such a one


class _Stream:
    """One stream. Each draw is a hash of its number: what was drawn before does not matter."""

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
