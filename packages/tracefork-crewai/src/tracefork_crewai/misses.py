"""A request that the tape does not hold ends the crew: at once, everywhere, and in words.

CrewAI tries a failed task again, hands a failed delegation to the manager as an answer, and works
on without the memory that failed. Nothing of that may hide a divergence. So the first call of a
model that fails because the session is over fails with the session's own error, in a class that
CrewAI takes for somebody's veto: that is passed on by all of it, and tried again by none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from tracefork_core import TraceforkError
from tracefork_core.adapters import check_session
from tracefork_crewai.llm_events import on_call


def veto(error: TraceforkError) -> Exception:
    """Return `error` as what CrewAI takes for a veto, and is what it was as well."""
    from crewai.hooks.dispatch import HookAborted

    made: Any = type(type(error).__name__, (HookAborted, type(error)), {"__module__": __name__})
    said = str(error)
    copy: Exception = made.__new__(made, said)
    vars(copy).update(vars(error), reason=said, source="tracefork")
    return copy


def instrument() -> Callable[[], None]:
    """Let no part of CrewAI work on in a session that is over; return the undoing."""
    with ExitStack() as stack:
        _let_pass(stack)
        stack.callback(on_call("failed", _check))
        _stop_backing_off(stack)
        return stack.pop_all().close


def _let_pass(stack: ExitStack) -> None:
    """Make agents pass our errors on: in its early versions CrewAI tries a vetoed task again."""
    core = vars(import_module("crewai.agent.core"))
    known = core["_passthrough_exceptions"]
    stack.callback(core.__setitem__, "_passthrough_exceptions", known)
    core["_passthrough_exceptions"] = (*known, TraceforkError)


def _check(_: object = None) -> None:
    try:
        check_session()
    except TraceforkError as error:
        raise veto(error) from None


def _stop_backing_off(stack: ExitStack) -> None:
    """Wait between the tries of a call as the session does, and not at all once it is over.

    The waiting is a default argument: what a session puts in the place of `sleep` would not be met.
    """
    try:
        retry = import_module("crewai.llms.retry")
    except ImportError:
        return

    def sleep(seconds: float) -> None:
        _check()
        time.sleep(seconds)

    async def asleep(seconds: float) -> None:
        _check()
        await asyncio.sleep(seconds)

    for name, waiting in (
        ("run_with_rate_limit_retry", sleep),
        ("arun_with_rate_limit_retry", asleep),
    ):
        defaults = getattr(retry, name).__kwdefaults__
        stack.callback(defaults.__setitem__, "sleep", defaults["sleep"])
        defaults["sleep"] = waiting
