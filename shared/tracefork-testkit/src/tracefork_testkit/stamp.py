"""Make up the ids, times and token counts of an answer."""

from __future__ import annotations

from email.utils import formatdate
from hashlib import sha256, shake_256

# Bound at import: an agent's clock and entropy may be patched in this very process,
# and a server that used the patched functions would appear in the agent's recording.
from os import urandom
from time import time as wall_clock

EPOCH = 1_767_225_600
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Stamp:
    """Derive all made-up values of an answer from one seed."""

    __slots__ = ("created", "seed")

    def __init__(self, seed: bytes, created: int) -> None:
        self.seed = seed
        self.created = created

    @classmethod
    def of(cls, request_bytes: bytes, occurrence: int) -> Stamp:
        """Return the stamp for these request bytes at their n-th occurrence."""
        seed = sha256(request_bytes + b"#%d" % occurrence).digest()
        return cls(seed, EPOCH + int.from_bytes(seed[:4], "big") % 31_536_000)

    @classmethod
    def fresh(cls) -> Stamp:
        """Return a stamp from the system's entropy and clock."""
        return cls(urandom(32), int(wall_clock()))

    def id(self, prefix: str, length: int = 24, part: int = 0) -> str:
        """Return `prefix` and `length` letters and digits; `part` tells siblings apart."""
        return prefix + self.letters(f"{prefix}{part}", length)

    def letters(self, label: str, length: int) -> str:
        """Return letters and digits that depend on the seed and the label."""
        drawn = shake_256(self.seed + label.encode()).digest(length)
        return "".join([ALPHABET[byte % 62] for byte in drawn])

    def below(self, limit: int, label: str) -> int:
        """Return a number in [0, limit)."""
        return int.from_bytes(sha256(self.seed + label.encode()).digest()[:8], "big") % limit


def http_date(seconds: float | None = None) -> str:
    """Return an HTTP date (default: now)."""
    return formatdate(wall_clock() if seconds is None else seconds, usegmt=True)
