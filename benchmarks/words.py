"""Text to send: random letters and spaces, about as compressible as prose, alike in every run."""

from __future__ import annotations

import random

_LETTERS = "abcdefghijklmnopqrstuvwxyz" + " " * 6


def words(size: int, seed: object) -> str:
    """Return `size` characters; the same for the same seed."""
    return "".join(random.Random(repr(seed)).choices(_LETTERS, k=size))
