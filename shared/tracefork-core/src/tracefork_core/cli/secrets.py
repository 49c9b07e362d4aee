"""The secrets that a recording masked, for people."""

from __future__ import annotations

from tracefork_core.cli.text import printable
from tracefork_core.tape import Receipt


def secret_words(receipt: Receipt) -> str:
    """Return what was masked, the most frequent first, each with how often it was."""
    counted = sorted(receipt.secrets.items(), key=lambda secret: (-secret[1], secret[0]))
    return printable(", ".join(f"{name} \u00d7{count}" for name, count in counted))
