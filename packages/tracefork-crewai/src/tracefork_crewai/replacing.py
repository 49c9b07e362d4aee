"""Methods of CrewAI's classes that are others while a session is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Method = Callable[..., Any]


def replaced(owner: type, name: str, wrap: Callable[[Method], Method]) -> Callable[[], None]:
    """Put what `wrap` makes of a class's own method in its place; return the undoing.

    A class without a method of that name stays as it is: versions of CrewAI differ.
    """
    before = vars(owner).get(name)
    if before is None:
        return lambda: None
    now = wrap(before)
    setattr(owner, name, now)

    def undo() -> None:
        if vars(owner).get(name) is now:  # Else somebody wrapped it, who needs what is inside.
            setattr(owner, name, before)

    return undo
