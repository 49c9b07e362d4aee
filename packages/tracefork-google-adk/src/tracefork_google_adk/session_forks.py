"""Fork a session of a recorded run: a new session that begins with its first events.

`Runner.rewind_async` goes back within a session and changes it. A fork leaves the original alone,
and can be anywhere: in the service of the original, in another one, or in another app.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from tracefork_core import Tape, UsageError
from tracefork_google_adk.session_notes import RecordedSession, sessions_on


async def fork_session(
    tape: str | Path | Tape,
    service: BaseSessionService,
    *,
    at: int | None = None,
    session_id: str | None = None,
    app_name: str | None = None,
    user_id: str | None = None,
    new_session_id: str | None = None,
) -> Session:
    """Create a session that holds the first events of a recorded one, and return it.

    The events and the state are as they were on the tape; secrets are placeholders. Values under
    `user:` and `app:` are shared with other sessions: those that the service has stay as they are,
    and missing ones are added. Artifacts are not copied.

    Args:
        tape: a recorded run, or a fork of one.
        service: where the new session is created.
        at: how many events it gets, those from before the recording among them; all by default.
        session_id: the recorded session; needed only if the run used several.
        app_name: the app of the new session; that of the recorded one by default.
        user_id: the user of the new session; that of the recorded one by default.
        new_session_id: the id of the new session; a new one by default.

    Raises:
        UsageError: the tape has no such session, or not that many events of it.
    """
    if not isinstance(tape, Tape):
        with Tape.open(tape) as opened:
            recorded = _chosen(opened, session_id)
    else:
        recorded = _chosen(tape, session_id)
    events = recorded.events
    if at is not None and not 0 <= at <= len(events):
        raise UsageError(
            f"tracefork: at must be between 0 and {len(events)} (got {at}): session "
            f"{recorded.first.id} of this tape has {len(events)} events."
        )
    new = await service.create_session(
        app_name=app_name or recorded.first.app_name,
        user_id=user_id or recorded.first.user_id,
        state=_state_before_events(recorded.first),
        session_id=new_session_id,
    )
    shared = {name for name in new.state if _is_shared(name)}
    for event in events[:at]:
        await service.append_event(new, _without(event, shared))
    return new


def _chosen(tape: Tape, session_id: str | None) -> RecordedSession:
    found = sessions_on(tape)
    if not found:
        raise UsageError(
            f"tracefork: {tape.path} has no session of Google ADK. Record the run with "
            "tracefork-google-adk installed."
        )
    if session_id is not None:
        wanted = [one for one in found if one.first.id == session_id]
    else:
        # An agent that is used as a tool has a service and a session of its own.
        wanted = [one for one in found if one.store == found[0].store]
    if len(wanted) != 1:
        ids = ", ".join(one.first.id for one in found)
        which = "no session" if session_id is not None else "several sessions"
        named = f" {session_id}" if session_id is not None else ""
        raise UsageError(
            f"tracefork: {tape.path} has {which}{named}. Pass session_id= with one of {ids}."
        )
    return wanted[0]


def _state_before_events(session: Session) -> dict[str, Any]:
    """Return the part of a session's own state that none of its events has set."""
    later = {name for event in session.events for name in event.actions.state_delta}
    return {
        name: value
        for name, value in session.state.items()
        if name not in later and not _is_shared(name)
    }


def _is_shared(name: str) -> bool:
    return name.startswith((State.APP_PREFIX, State.USER_PREFIX))


def _without(event: Event, names: set[str]) -> Event:
    """Return a copy of an event that leaves these values of the state alone."""
    copy = event.model_copy(deep=True)
    delta: dict[str, Any] = copy.actions.state_delta
    copy.actions.state_delta = {key: delta[key] for key in delta if key not in names}
    return copy
