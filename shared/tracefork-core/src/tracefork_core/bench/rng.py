"""Chance that can be had again: what is drawn depends on a name alone."""

from __future__ import annotations

from random import Random


def chance(name: str) -> Random:
    """Return a source of chance that a name seeds, alike on every machine."""
    return Random(name)  # noqa: S311 - what is simulated must come out again
