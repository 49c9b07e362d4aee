"""End the whole crew at once, with a readable error, if the tape does not hold a request.

CrewAI retries a failed task, passes a failed delegation to the manager as an answer, and continues
without a memory that failed. None of that may hide a divergence. So the first model call that fails
because the session is over raises the session's own error, in a class that CrewAI takes for the
veto of a hook. CrewAI passes a veto on everywhere and retries it nowhere.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from importlib import import_module

from tracefork_core import TraceforkError
from tracefork_core.adapters import Patches, also_a, check_session
from tracefork_crewai.llm_events import on_call


def veto(error: TraceforkError) -> Exception:
    """Return `error` in a class that is both its own and the one of CrewAI's vetoes."""
    from crewai.hooks.dispatch import HookAborted

    return also_a(error, HookAborted, reason=str(error), source="tracefork")


def put_in(patches: Patches) -> None:
    """Let no part of CrewAI continue in a session that is over."""
    _let_pass(patches)
    on_call(patches, "failed", _check)
    _stop_backing_off(patches)


def _let_pass(patches: Patches) -> None:
    """Make agents pass our errors on: early versions of CrewAI retry a vetoed task."""
    core = import_module("crewai.agent.core")
    patches.wrap(core, "_passthrough_exceptions", lambda known: (*known, TraceforkError))


def _check(_: object = None) -> None:
    try:
        check_session()
    except TraceforkError as error:
        raise veto(error) from None


def _stop_backing_off(patches: Patches) -> None:
    """Wait between the attempts of a call as the session does, and not at all once it is over.

    The function that waits is a default argument of CrewAI's, so the session's `sleep` does not
    reach it.
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
        patches.at_undo(partial(defaults.__setitem__, "sleep", defaults["sleep"]))
        defaults["sleep"] = waiting
