"""The event loop and the task that run here, asked without loading asyncio."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from typing import Any


def loop_is_running() -> bool:
    """Return whether an event loop of asyncio runs in this thread."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None  # noqa: SLF001 - in `__all__`


def running_task() -> Task[Any] | None:
    """Return the task that runs here, or None."""
    events = sys.modules.get("asyncio.events")
    # Every draw asks: where no loop runs, an exception would cost more than all the rest.
    if events is None or (loop := events._get_running_loop()) is None:  # noqa: SLF001 - in `__all__`
        return None
    task: Task[Any] | None = sys.modules["asyncio.tasks"].current_task(loop)
    return task
