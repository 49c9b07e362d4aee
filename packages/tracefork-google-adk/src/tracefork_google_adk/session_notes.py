"""What a tape has of sessions: each one as it was created or read, and each event that followed.

A note's value is the JSON of ADK's own models, as one text of MessagePack, in which secrets are
masked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from pydantic import BaseModel

from tracefork_core import Tape
from tracefork_core.adapters import State, undisturbed

SESSION, EVENT = "session", "event"
"""What a note is about: a whole session, or an event that was appended to one."""
_Model = TypeVar("_Model", bound=BaseModel)
Identity = tuple[str, str, str]
"""The app, the user and the id of a session."""


def text_of(model: BaseModel | None) -> str | None:
    """Return a model of ADK as JSON; values of the user's that have none as their `repr`.

    To see what is a default, pydantic makes defaults. That of a time reads the clock.
    """
    if model is None:
        return None
    with undisturbed():
        text: str = model.model_dump_json(exclude_defaults=True, fallback=repr)
    return text


def model_of(kind: type[_Model], text: str) -> _Model:
    """Return the model that `text_of` has turned into JSON."""
    with undisturbed():
        model: _Model = kind.model_validate_json(text)
    return model


class Notes:
    """What one stand-in writes to the tape and reads from it."""

    def __init__(self, state: State) -> None:
        self._state = state

    def number(self, *key: str) -> int:
        """Return the number of a note that is made or looked for now: 0 for the first one."""
        return self._state.number(" ".join(key))

    def session(self, session: Session, *key: str, n: int | None = None) -> None:
        """Put a whole session on the tape."""
        of = identity(session)
        key = key or (SESSION, *of)
        self.put(*key, n=self.number(*key) if n is None else n, of=of, model=session, about=SESSION)

    def event(self, session: Session, event: Event, n: int) -> None:
        """Put event number `n` on the tape that this run has appended to a session."""
        of, updated = identity(session), session.last_update_time
        self.put(EVENT, *of, n=n, of=of, model=event, about=EVENT, updated=updated)

    def put(
        self,
        *key: str,
        n: int,
        of: object = None,
        model: BaseModel | None = None,
        **more: object,
    ) -> None:
        """Put a note on the tape, if the session writes one."""
        if not self._state.is_noted:
            return
        text = text_of(model)
        values = [] if text is None else [("msgpack", msgspec.msgpack.encode(text))]
        self._state.note(" ".join(key), n, {"of": of, **more}, values)

    def recorded(self, *key: str, n: int) -> tuple[dict[str, Any], str | None] | None:
        """Return what was noted under a number, and its text; None if nothing was."""
        for noted in self._state.recorded(" ".join(key), n):
            if noted.n == n:
                values = noted.values
                text = msgspec.msgpack.decode(values[0][1], type=str) if values else None
                return noted.answer, text
        return None


def identity(session: Session) -> Identity:
    """Return what names a session."""
    return session.app_name, session.user_id, session.id


@dataclass
class RecordedSession:
    """A session of a recorded run: `first` is how it was when the run began with it."""

    store: str
    first: Session
    later: list[Event] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """Its events in order, those from before the recording too."""
        return [*self.first.events, *self.later]


def sessions_on(tape: Tape) -> list[RecordedSession]:
    """Return the sessions of a recorded run, in the order in which it began with them."""
    found: dict[tuple[str, Identity], RecordedSession] = {}
    for read in tape.states:
        answer = read.answer if isinstance(read.answer, dict) else {}
        if answer.get("about") not in (SESSION, EVENT) or not read.values:
            continue
        text = msgspec.msgpack.decode(tape.blob(read.values[0].sha), type=str)
        app, user, name = answer["of"]
        key = read.store, (app, user, name)
        if answer["about"] == SESSION:
            if key not in found:
                found[key] = RecordedSession(read.store, model_of(Session, text))
        elif key in found:
            found[key].later.append(model_of(Event, text))
    return list(found.values())
