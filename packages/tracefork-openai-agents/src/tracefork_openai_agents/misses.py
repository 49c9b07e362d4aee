"""Let a divergence through the SDK, which tells models about errors, and tries again after some.

The SDK raises each error of a tool as a `UserError`, unless it is one of its own. So an error of
ours is raised as one of its own, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from agents.exceptions import AgentsException
from agents.run_internal import model_retry

from tracefork_core.adapters import Patches, check_session


def put_in(patches: Patches) -> None:
    """End a run at its first divergence, instead of trying again."""
    patches.wrap(model_retry, "_sleep_for_retry", _checked)


def check() -> None:
    """Raise the first error of the session, in a class that the SDK lets pass."""
    check_session(AgentsException, run_data=None)


def _checked(sleep: Callable[[float], Any]) -> Callable[[float], Any]:
    @wraps(sleep)
    async def slept(delay: float) -> None:
        check()
        await sleep(delay)

    return slept
