"""Masked secrets, for people."""

from __future__ import annotations

from collections.abc import Mapping

from tracefork_core.cli.display.text import printable


def secret_words(secrets: Mapping[str, int]) -> str:
    """Return the names of masked secrets with their counts, most frequent first."""
    counted = sorted(secrets.items(), key=lambda secret: (-secret[1], secret[0]))
    return printable(", ".join(f"{name} \u00d7{count}" for name, count in counted))
