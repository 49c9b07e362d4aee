"""Keep on the tape what a team, or an agent, had in mind at the end of each of its runs.

A fork of a tape replays all that came before, which costs nothing, so it needs no saved state. A
program that wants to ask something else from there needs one: see `state_forks`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import wraps
from typing import Any

import msgspec
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Team

from tracefork_autogen.state_forks import KIND
from tracefork_core.adapters import (
    Patches,
    State,
    current_step,
    is_recorded_here,
    replace_in_classes,
    state_of,
    undisturbed,
)

_STATES = object()
"""Stands for the states of a session's teams and agents."""


def put_in(patches: Patches) -> None:
    """Note the states of teams and agents at the end of their runs."""
    replace_in_classes(patches, Team, ["run_stream"], _instead)
    replace_in_classes(patches, BaseChatAgent, ["run", "run_stream"], _instead)


def _instead(_owner: type, name: str, original: Any) -> Any:
    return _as_stream(original) if name == "run_stream" else _as_call(original)


def _as_call(run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(run)
    async def ran(self: Any, *args: Any, **options: Any) -> Any:
        result = await run(self, *args, **options)
        await _note(self)
        return result

    return ran


def _as_stream(run_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_stream)
    async def ran(self: Any, *args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(run_stream(self, *args, **options)) as events:
            async for event in events:
                yield event
        await _note(self)

    return ran


async def _note(runner: Any) -> None:
    # Those that run inside of another have no conversation of their own.
    if not is_recorded_here() or current_step.get() is not None:
        return
    state = state_of(_STATES, KIND, _same)
    if state is None or not state.is_noted:
        return
    try:
        with undisturbed():
            text = json.dumps(await runner.save_state())
    except Exception:  # noqa: BLE001 - an agent of the user's, perhaps: it may keep what has no JSON
        return
    n = state.number(runner.name)
    state.note(runner.name, n, {"of": runner.name}, [("msgpack", msgspec.msgpack.encode(text))])


def _same(state: State) -> State:
    return state
