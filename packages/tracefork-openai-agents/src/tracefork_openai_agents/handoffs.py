"""Put hand-offs on the tape: each is a step named by the next agent, and an exchange in it.

A hand-off is a tool to the model. Here it is run in replays too: it calls nothing but the program's
own `on_handoff`, which often changes the run's context, and returns an agent, which no tape could
hold. The exchange says which agent that was.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any

from agents.run_internal import turn_resolution

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, in_session
from tracefork_openai_agents.steps import handoff_to
from tracefork_openai_agents.tool_calls import call, decoded


def put_in(patches: Patches) -> None:
    """Make steps and exchanges of the hand-offs of the open session."""
    patches.wrap(turn_resolution, "execute_handoffs", _as_exchange)


def _as_exchange(execute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(execute)
    async def executed(*, run_handoffs: list[Any], **options: Any) -> Any:
        if not in_session():
            return await execute(run_handoffs=run_handoffs, **options)
        first, *ignored = run_handoffs  # The SDK accepts one hand-off of an answer.
        handoff_to.set(first.handoff.agent_name)
        recorded = dataclasses.replace(first, handoff=_recorded(first.handoff))
        return await execute(run_handoffs=[recorded, *ignored], **options)

    return executed


def _recorded(handoff: Any) -> Any:
    async def invoke(context: Any, arguments: str) -> Any:
        agent = await handoff.on_invoke_handoff(context, arguments)

        async def name(**_: Any) -> str:
            return str(agent.name)

        told = decoded(arguments)
        given = await call(handoff.tool_name, told, name, effect="pure", is_tool=False)
        if given != agent.name:
            raise UsageError(
                f"tracefork: the hand-off to {agent.name} cannot go to {given!r:.60}. Fork at the "
                "answer of the model that called it, and let that call another one."
            )
        return agent

    recorded = copy.copy(handoff)
    recorded.on_invoke_handoff = invoke
    return recorded
