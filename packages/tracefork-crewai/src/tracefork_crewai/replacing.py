"""Replace methods of CrewAI's classes while a session is open."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import requires, version
from typing import Any

from tracefork_core import UsageError

Method = Callable[..., Any]


def replaced(owner: type, name: str, wrap: Callable[[Method], Method]) -> Callable[[], None]:
    """Replace a class's own method by what `wrap` makes of it; return the undoing.

    Raises:
        UsageError: this version of CrewAI has no such method, so its calls would not be recorded.
    """
    before = vars(owner).get(name)
    if before is None:
        raise unknown(f"{owner.__name__} has no {name}")
    now = wrap(before)
    setattr(owner, name, now)

    def undo() -> None:
        if vars(owner).get(name) is now:  # Another library may have wrapped ours since.
            setattr(owner, name, before)

    return undo


def unknown(what: str) -> UsageError:
    """Return an error that says how this version of CrewAI differs from the supported ones."""
    needs = requires("tracefork-crewai") or ()
    wanted = next(need for need in needs if need.startswith("crewai"))
    return UsageError(
        f"tracefork: tracefork-crewai does not support CrewAI {version('crewai')}: {what}. It is "
        f"made for {wanted}: pip install {wanted!r}, or a newer tracefork-crewai. Without the "
        "adapter (pip uninstall tracefork-crewai) tracefork records models, not tasks and tools."
    )
