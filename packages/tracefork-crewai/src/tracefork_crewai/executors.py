"""Let the agent work at replay that worked in the recording, if two calls reach it at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from tracefork_core.adapters import Patches
from tracefork_crewai.event_scope import agent_here, is_on_tape
from tracefork_crewai.refusals import BUSY

_HOMES = ("crewai.agents.agent_executor", "crewai.experimental.agent_executor")
_PATIENCE, _MOMENT = 100, 0.05
_done = threading.Condition()


def put_in(patches: Patches) -> None:
    """Let agents of a session refuse work as the tape says."""
    for home in _HOMES:
        try:
            executor = import_module(home).AgentExecutor
        except (ImportError, AttributeError):
            continue  # CrewAI has moved it between versions.
        patches.wrap(executor, "invoke", _invoked)
        patches.wrap(executor, "invoke_async", _ainvoked)


def _invoked(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    def invoked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_on_tape() or _runs_in_loop():
            return invoke(self, *args, **kwargs)  # Inside a loop `invoke` calls `invoke_async`.
        _refuse_as_recorded()
        _wait_as_recorded(self)
        try:
            return invoke(self, *args, **kwargs)
        except RuntimeError as error:
            _note(error)
            raise
        finally:
            with _done:
                _done.notify_all()

    return invoked


def _ainvoked(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    async def invoked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_on_tape():
            _refuse_as_recorded()
        try:
            return await invoke(self, *args, **kwargs)
        except RuntimeError as error:
            _note(error)
            raise

    return invoked


def _refuse_as_recorded() -> None:
    agent = agent_here()
    if agent is not None and agent.refusal:
        agent.error = agent.refusal
        raise RuntimeError(agent.refusal)


def _wait_as_recorded(executor: Any) -> None:
    """Wait for an agent that was free in the recording and is still busy now."""
    agent = agent_here()
    if agent is None or agent.refusal != "":
        return
    with _done:
        for _ in range(_PATIENCE):
            if not executor._is_executing:  # noqa: SLF001 - there is no public attribute
                return
            _done.wait(_MOMENT)


def _note(error: RuntimeError) -> None:
    """Keep the reason of a refusal: early versions of CrewAI emit no event for some of them."""
    agent = agent_here()
    if agent is not None and str(error).startswith(BUSY):
        agent.error = str(error)


def _runs_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
