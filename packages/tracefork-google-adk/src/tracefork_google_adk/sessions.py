"""Note the events of sessions on the tape, and keep a replay away from those of other runs.

Sessions outlive a run: a database has those of earlier runs, and a replay must neither read what
was added since nor write to it.

`InMemorySessionService` works as it always does. In a replay or fork it begins with the sessions
that it held when the recording first used it, and gets its own back afterwards. In front of every
other service is a stand-in (`stored_sessions`).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from pydantic import BaseModel

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed
from tracefork_google_adk.session_notes import EVENT, Notes, identity, model_of
from tracefork_google_adk.stored_sessions import StoredSessions

_NAMES = (
    *("create_session", "get_session", "list_sessions", "delete_session", "append_event"),
    *("get_user_state", "flush", "prepare_tables"),
    *("create_session_sync", "get_session_sync", "list_sessions_sync", "delete_session_sync"),
)
_BEFORE = "before"


class _Content(BaseModel):
    """What an `InMemorySessionService` holds."""

    sessions: list[Session] = []
    user_state: dict[str, dict[str, dict[str, Any]]] = {}
    app_state: dict[str, dict[str, Any]] = {}


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each service of sessions."""
    put_in_front(patches, BaseSessionService, _NAMES, partial(_made, patches), same=_same)


def _made(patches: Patches, held: Any, state: State) -> Any:
    if isinstance(held, InMemorySessionService):
        return InMemorySessions(held, state, patches)
    return StoredSessions(state)


def _same(held: Any) -> Hashable | None:
    """Return what services of one database share."""
    engine = getattr(held, "db_engine", None)
    place = str(engine.url) if engine is not None else getattr(held, "_db_path", None)
    if place is None or ":memory:" in str(place):
        return None
    return type(held).__qualname__, str(place)


class InMemorySessions:
    """An `InMemorySessionService`, as one session of tracefork sees it."""

    def __init__(self, held: InMemorySessionService, state: State, patches: Patches) -> None:
        self._notes = Notes(state)
        n = self._notes.number(_BEFORE)
        if state.is_answered:
            own = {name: vars(held)[name] for name in _Content.model_fields}
            patches.at_undo(lambda: vars(held).update(own))
            noted = self._notes.recorded(_BEFORE, n=n)
            text = noted[1] if noted is not None else None
            _fill(held, model_of(_Content, text) if text else _Content())
        with undisturbed():
            content = _content(held)
        self._notes.put(_BEFORE, n=n, model=content if content != _Content() else None)
        for session in content.sessions:
            self._notes.session(session)

    async def create_session(self, own: Any, *args: Any, **options: Any) -> Session:
        """Create a session, and note it."""
        with undisturbed(below_seam=False):
            session: Session = await own(*args, **options)
        self._notes.session(session)
        return session

    def create_session_sync(self, own: Any, *args: Any, **options: Any) -> Session:
        """Create a session, and note it."""
        with undisturbed(below_seam=False):
            session: Session = own(*args, **options)
        self._notes.session(session)
        return session

    async def append_event(self, own: Any, session: Session, event: Event) -> Event:
        """Append an event, and note it."""
        with undisturbed(below_seam=False):
            appended: Event = await own(session, event)
        if not event.partial:
            n = self._notes.number(EVENT, *identity(session))
            self._notes.event(session, appended, n)
        return appended

    def __getattr__(self, name: str) -> Any:
        """Return what only reads, or deletes: the service does that as always."""
        if name not in _NAMES:
            raise AttributeError(name)
        return lambda own, *args, **options: own(*args, **options)


def _content(held: InMemorySessionService) -> _Content:
    sessions = [
        session
        for of_user in held.sessions.values()
        for by_id in of_user.values()
        for session in by_id.values()
    ]
    return _Content(sessions=sessions, user_state=held.user_state, app_state=held.app_state)


def _fill(held: InMemorySessionService, content: _Content) -> None:
    held.sessions = {}
    for session in content.sessions:
        of_user = held.sessions.setdefault(session.app_name, {})
        of_user.setdefault(session.user_id, {})[session.id] = session
    held.user_state, held.app_state = content.user_state, content.app_state
