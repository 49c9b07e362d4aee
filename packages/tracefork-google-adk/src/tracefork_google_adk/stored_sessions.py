"""Stand in for a service that keeps sessions in a database or on a server.

A recording asks the service, and notes what the run read: each session as it was first, and later
reads where they gave something else than this run has written. A replay or fork is answered with
that, and with what the run itself writes, which it keeps in memory. The service is left alone.
"""

from __future__ import annotations

import json
from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from tracefork_core.adapters import State, fork_point, undisturbed
from tracefork_google_adk.session_notes import EVENT, Notes, identity, model_of, text_of


def _text(asked: dict[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True, default=repr)


class StoredSessions:
    """A service that keeps sessions elsewhere, as one session of tracefork sees it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._notes = Notes(state)
        self._ours = InMemorySessionService()
        """The sessions that this run has created or read, with what it has written."""

    async def create_session(self, own: Any, **options: Any) -> Session:
        """Create a session."""
        key = ("create", _text(options))
        n = self._notes.number(*key)
        noted = self._notes.recorded(*key, n=n)
        error = None if noted is None else noted[0].get("error")
        if error is None:
            try:
                session = await self._created(own, noted[1] if noted else None, options)
            except AlreadyExistsError as raised:
                error = str(raised)
        if error is not None:
            self._notes.put(*key, n=n, error=error)
            raise AlreadyExistsError(error)
        self._notes.session(session, *key, n=n)
        self._keep(session)
        return session

    async def _created(self, own: Any, noted: str | None, options: dict[str, Any]) -> Session:
        if noted is not None:
            return model_of(Session, noted)
        if self._state.is_answered:
            with undisturbed(below_seam=False):
                return await self._ours.create_session(**options)
        with undisturbed():
            session: Session = await own(**options)
        return session

    async def get_session(
        self,
        own: Any,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session, or those events of it that are asked for."""
        asked = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        key = ("get", app_name, user_id, session_id)
        n = self._notes.number(*key)
        if not self._is_ours(**asked):
            await self._read_first(own, asked)
        with undisturbed():
            ours = await self._ours.get_session(**asked, config=config)
            if not self._state.is_answered:
                found: Session | None = await own(**asked, config=config)
                if text_of(found) != text_of(ours):
                    self._notes.put(*key, n=n, model=found)
                return found
        noted = self._notes.recorded(*key, n=n) if fork_point() is None else None
        if noted is None:
            return ours
        return model_of(Session, noted[1]) if noted[1] else None

    async def _read_first(self, own: Any, asked: dict[str, str]) -> None:
        """Keep a session as it was before this run."""
        key = ("first", *asked.values())
        n = self._notes.number(*key)
        if self._state.is_answered:
            noted = self._notes.recorded(*key, n=n)
            session = model_of(Session, noted[1]) if noted and noted[1] else None
        else:
            with undisturbed():
                session = await own(**asked)
        if session is not None:
            self._notes.session(session, *key, n=n)
            self._keep(session)

    async def list_sessions(self, own: Any, **asked: Any) -> ListSessionsResponse:
        """Return the sessions of a user, without their events."""
        key = ("list", _text(asked))
        n = self._notes.number(*key)
        noted = self._notes.recorded(*key, n=n)
        with undisturbed():
            if noted is not None and noted[1]:
                found = model_of(ListSessionsResponse, noted[1])
            elif self._state.is_answered:
                found = await self._ours.list_sessions(**asked)
            else:
                found = await own(**asked)
        self._notes.put(*key, n=n, model=found)
        return found

    async def get_user_state(self, own: Any, **asked: Any) -> dict[str, Any]:
        """Return what all sessions of a user share."""
        key = ("user_state", _text(asked))
        n = self._notes.number(*key)
        noted = self._notes.recorded(*key, n=n)
        with undisturbed():
            if noted is not None:
                found: dict[str, Any] = noted[0]["of"]
            elif self._state.is_answered:
                found = await self._ours.get_user_state(**asked)
            else:
                found = await own(**asked)
        self._notes.put(*key, n=n, of=found)
        return found

    async def append_event(self, own: Any, session: Session, event: Event) -> Event:
        """Append an event to a session."""
        if event.partial:
            return event
        if not self._is_ours(*identity(session)):
            self._notes.session(session)  # It was read before the session of tracefork began.
            self._keep(session)
        key = (EVENT, *identity(session))
        n = self._notes.number(*key)
        with undisturbed():
            if self._state.is_answered:
                await BaseSessionService.append_event(self._ours, session, event)
                noted = self._notes.recorded(*key, n=n)
                session.last_update_time = noted[0]["updated"] if noted else event.timestamp
            else:
                event = await own(session, event)
            await self._append_to_ours(session, event)
        self._notes.event(session, event, n)
        return event

    async def delete_session(self, own: Any, **asked: Any) -> None:
        """Delete a session."""
        with undisturbed():
            if not self._state.is_answered:
                await own(**asked)
            await self._ours.delete_session(**asked)

    async def flush(self, own: Any) -> None:
        """Let the service write what it has buffered."""
        await self._upkeep(own)

    async def prepare_tables(self, own: Any) -> None:
        """Let the service make its tables."""
        await self._upkeep(own)

    async def _upkeep(self, own: Any) -> None:
        if not self._state.is_answered:
            with undisturbed():
                await own()

    def _is_ours(self, app_name: str, user_id: str, session_id: str) -> bool:
        return session_id in self._ours.sessions.get(app_name, {}).get(user_id, {})

    def _keep(self, session: Session) -> None:
        ours = session.model_copy(deep=True)
        app, user, name = identity(ours)
        self._ours.sessions.setdefault(app, {}).setdefault(user, {})[name] = ours

    async def _append_to_ours(self, session: Session, event: Event) -> None:
        app, user, name = identity(session)
        stored = self._ours.sessions[app][user][name]
        stale = stored.model_copy(update={"events": [], "state": {}})
        await self._ours.append_event(stale, event.model_copy(deep=True))
        stored.last_update_time = session.last_update_time
