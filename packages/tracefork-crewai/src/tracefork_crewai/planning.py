"""Give a crew's planner the same prompt in every process.

CrewAI puts the repr of each tool into it, which contains the memory addresses of functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from crewai.utilities.planning_handler import CrewPlanner

from tracefork_core.adapters import Patches, in_session

_ADDRESS = re.compile(r"(?<= at 0x)[0-9a-fA-F]+(?=>)")


def put_in(patches: Patches) -> None:
    """Remove memory addresses from the prompt of a session's planner."""
    patches.wrap(CrewPlanner, "_create_tasks_summary", _without_addresses)


def _without_addresses(summary: Callable[..., str]) -> Callable[..., str]:
    @wraps(summary)
    def told(self: Any) -> str:
        prompt = summary(self)
        return _ADDRESS.sub("0", prompt) if in_session() else prompt

    return told
