"""What the planner of a crew is told: the same in every process.

It is told the repr of each tool, and with it where in memory its functions lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from crewai.utilities.planning_handler import CrewPlanner

from tracefork_core.adapters import in_session
from tracefork_crewai.replacing import replaced

_ADDRESS = re.compile(r"(?<= at 0x)[0-9a-fA-F]+(?=>)")


def instrument() -> Callable[[], None]:
    """Take the addresses out of what a session's planner is told; return the undoing."""
    return replaced(CrewPlanner, "_create_tasks_summary", _without_addresses)


def _without_addresses(summary: Callable[..., str]) -> Callable[..., str]:
    @wraps(summary)
    def told(self: Any) -> str:
        said = summary(self)
        return _ADDRESS.sub("0", said) if in_session() else said

    return told
