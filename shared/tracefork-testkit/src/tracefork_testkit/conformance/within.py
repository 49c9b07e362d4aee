"""End a test that hangs.

The work runs in a thread of its own, because only another thread can stop to wait for it. A thread
that hangs cannot be stopped. Python would wait for it, or for a pool that it waits for, when the
process ends. So `plugin` leaves the process at the end of the tests if `hung` names a thread.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

hung: list[threading.Thread] = []
"""The threads that were given up in this process."""


def within(seconds: float, work: Callable[[], None]) -> None:
    """Call `work` and raise what it raises; fail if it takes longer than that.

    Raises:
        AssertionError: it hangs; the message says where.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run, name="conformance", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        hung.append(thread)
        raise AssertionError(f"still running after {seconds:g} s, here:\n{_stack(thread)}")
    if errors:
        raise errors[0]


def _stack(thread: threading.Thread) -> str:
    frame: Any = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the only way to see it
    return "".join(traceback.format_stack(frame)) if frame is not None else "it ended just now"
