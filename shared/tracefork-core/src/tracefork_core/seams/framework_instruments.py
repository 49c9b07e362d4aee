"""The instruments of installed adapters, which a session switches on as it does its own seams."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points

from tracefork_core.patching.instrument import Instrument

GROUP = "tracefork.instruments"
"""The group of entry points whose values are an `Instrument`."""


@cache
def of_adapters() -> tuple[Instrument, ...]:
    """Return the instrument of each adapter that has one; of a broken one a warning is left."""
    found = []
    for point in entry_points(group=GROUP):
        try:
            found.append(point.load())
        except Exception as error:
            warnings.warn(
                f"tracefork: the adapter for {point.name} is left out: {error!r}. `tracefork "
                "doctor` says more.",
                stacklevel=2,
            )
    return tuple(found)
