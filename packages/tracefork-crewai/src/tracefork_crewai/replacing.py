"""Methods of CrewAI's classes that are others while a session is open."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import requires, version
from typing import Any

from tracefork_core import UsageError

Method = Callable[..., Any]


def replaced(owner: type, name: str, wrap: Callable[[Method], Method]) -> Callable[[], None]:
    """Put what `wrap` makes of a class's own method in its place; return the undoing.

    Raises:
        UsageError: this version of CrewAI has no such method, so what it does would go unseen.
    """
    before = vars(owner).get(name)
    if before is None:
        raise unknown(f"{owner.__name__} has no {name}")
    now = wrap(before)
    setattr(owner, name, now)

    def undo() -> None:
        if vars(owner).get(name) is now:  # Else somebody wrapped it, who needs what is inside.
            setattr(owner, name, before)

    return undo


def unknown(what: str) -> UsageError:
    """Return an error that says how this version of CrewAI is not as it is known here."""
    wanted = next(one for one in requires("tracefork-crewai") or () if one.startswith("crewai"))
    return UsageError(
        f"tracefork: CrewAI {version('crewai')} is not as tracefork-crewai knows it: {what}. It is "
        f"made for {wanted}: pip install {wanted!r}, or a newer tracefork-crewai. Without the "
        "adapter (pip uninstall tracefork-crewai) models are recorded, tasks and tools are not."
    )
