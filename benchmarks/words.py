"""Text to send: random letters and spaces, the same in every run; zstd halves it."""

from __future__ import annotations

import random

_LETTERS = b"abcdefghijklmnopqrstuvwxyz      " * 8


def words(size: int, seed: object) -> str:
    """Return `size` characters, the same for the same seed."""
    return random.Random(repr(seed)).randbytes(size).translate(_LETTERS).decode()
