"""The fault that the environment variable FAULT plants in the claims desk.

    instruction    the refunds agent is told only to read "our policy", and may read the wrong one
    tool           `charged` returns another amount
    handoff        the triage agent hands over to billing instead of shipping
    mcp            the server of orders returns another date of delivery

A fault shows at its first chance and at every fortieth after that. So a run that was recorded right
after planting it fails, and nearly every run that decides the faulty step again does not.
"""

import os
from pathlib import Path


def is_planted(place: str) -> bool:
    """Return whether the fault is at this place."""
    return os.environ.get("FAULT") == place


def shows(place: str) -> bool:
    """Return whether the fault is at this place, and shows this time."""
    if not is_planted(place):
        return False
    with Path(f".chances-{place}").open("a") as chances:  # Several processes count in it.
        chances.write(".")
        return chances.tell() % 40 == 1
