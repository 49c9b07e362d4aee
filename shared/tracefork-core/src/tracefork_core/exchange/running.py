"""The task that runs here, asked without loading asyncio: where it is not loaded, none does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from typing import Any


def running_task() -> Task[Any] | None:
    """Return the task that runs here, or None."""
    tasks, events = sys.modules.get("asyncio.tasks"), sys.modules.get("asyncio.events")
    if tasks is None or events is None:
        return None
    # Every request asks: where no loop runs, an exception would cost more than all the rest.
    loop = events._get_running_loop()  # noqa: SLF001 - asyncio has it in `__all__`
    return None if loop is None else tasks.current_task(loop)
