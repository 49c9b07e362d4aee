"""Masked secrets, for people."""

from __future__ import annotations

from collections.abc import Mapping

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable


def secret_words(secrets: Mapping[str, int]) -> str:
    """Return the names of masked secrets with their counts, most frequent first."""
    counted = sorted(secrets.items(), key=lambda secret: (-secret[1], secret[0]))
    return printable(", ".join(f"{name} \u00d7{count}" for name, count in counted))


def unsearched_words(count: int) -> str:
    """Return how many bodies were stored without a search for secrets."""
    bodies = figures.several(count, "compressed body", "compressed bodies")
    return f"{bodies} not searched for secrets: unpacking passed a limit or failed"
