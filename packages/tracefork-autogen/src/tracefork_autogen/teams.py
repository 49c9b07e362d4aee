"""Make steps of teams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import wraps
from typing import Any

from autogen_agentchat.base import Team

from tracefork_core.adapters import (
    Patches,
    RunningStep,
    check_session,
    events_in,
    in_session,
    replace_in_classes,
)


def put_in(patches: Patches) -> None:
    """Put teams on the tape of the open session, as steps."""
    replace_in_classes(patches, Team, ["run_stream"], lambda _owner, _name, run: _as_team(run))


def _as_team(run_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_stream)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        events = run_stream(self, *args, **options)
        return _events_of(self, events) if in_session() else events

    return run


async def _events_of(team: Any, events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Yield the events of a team, unless the session has failed: a team makes texts of errors."""
    running = RunningStep.begin("team", team.name)
    try:
        async for event in events_in(running, events):
            check_session()
            yield event
    except Exception:
        check_session()
        raise
    check_session()
