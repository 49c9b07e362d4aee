"""Stand in for the repositories of sessions, in which agents keep conversations between runs.

A session manager of Strands that stores each message keeps them in a `SessionRepository`: a folder,
a bucket of S3, or a class of the program's. The manager itself runs in replays as it always does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, wraps
from typing import Any

from strands.session import FileSessionManager, RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from tracefork_core.adapters import Patches, State, Stored, answering_tape, put_in_front

_NAMES = (
    *("create_session", "read_session", "delete_session"),
    *("create_agent", "read_agent", "update_agent"),
    *("create_message", "read_message", "update_message", "list_messages"),
    *("create_multi_agent", "read_multi_agent", "update_multi_agent"),
)
_MESSAGES, _ORCHESTRATOR = "messages", "multi_agent"
_Key = tuple[Any, ...]


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each repository of sessions."""
    put_in_front(patches, SessionRepository, _NAMES, StoredSessions, same=_same)
    patches.wrap(FileSessionManager, "__init__", _without_folder)


def _same(held: Any) -> Hashable | None:
    """Return what managers of one folder or bucket share."""
    if (folder := getattr(held, "storage_dir", None)) is not None:
        return type(held).__qualname__, str(folder)
    bucket = getattr(held, "bucket", None)
    return None if bucket is None else (type(held).__qualname__, bucket, held.prefix)


def _without_folder(init: Callable[..., None]) -> Callable[..., None]:
    """Make no folder in a replay or fork: the stand-in answers, and nothing else uses it."""

    @wraps(init)
    def made(self: Any, session_id: str, storage_dir: str | None = None, **options: Any) -> None:
        if answering_tape() is None or storage_dir is None:
            init(self, session_id, storage_dir, **options)
            return
        self.storage_dir = storage_dir
        RepositorySessionManager.__init__(self, session_id=session_id, session_repository=self)

    return made


class StoredSessions:
    """A repository of sessions, as one session of tracefork sees it."""

    def __init__(self, _: Any, state: State) -> None:
        self._stored = Stored(state, SessionException, NotImplementedError)
        self._known: dict[_Key, Any] = {}
        """What this run has read and written: records by their keys, as data."""
        self._written: set[_Key] = set()

    def create_session(self, own: Any, session: Session, **options: Any) -> Session:
        """Create a session."""
        key = (session.session_id,)
        self._write(key, session.to_dict(), partial(own, session, **options), "create_session")
        return session

    def read_session(self, own: Any, session_id: str, **options: Any) -> Session | None:
        """Return a session."""
        found = self._read((session_id,), partial(own, session_id, **options))
        return None if found is None else Session.from_dict(found)

    def delete_session(self, own: Any, session_id: str, **options: Any) -> None:
        """Delete a session and all of its records."""
        self._write((session_id,), None, partial(own, session_id, **options), "delete_session")
        for key in list(self._known):
            if key[0] == session_id:
                self._put(key, None)

    def create_agent(self, own: Any, session_id: str, session_agent: Any, **options: Any) -> None:
        """Store an agent."""
        create = partial(own, session_id, session_agent, **options)
        key = (session_id, session_agent.agent_id)
        self._write(key, session_agent.to_dict(), create, "create_agent")

    def read_agent(
        self, own: Any, session_id: str, agent_id: str, **options: Any
    ) -> SessionAgent | None:
        """Return an agent."""
        found = self._read((session_id, agent_id), partial(own, session_id, agent_id, **options))
        return None if found is None else SessionAgent.from_dict(found)

    def update_agent(self, own: Any, session_id: str, session_agent: Any, **options: Any) -> None:
        """Store an agent again."""
        update = partial(own, session_id, session_agent, **options)
        key = (session_id, session_agent.agent_id)
        self._write(key, session_agent.to_dict(), update, "update_agent")

    def create_message(
        self, own: Any, session_id: str, agent_id: str, session_message: Any, **options: Any
    ) -> None:
        """Store a message."""
        create = partial(own, session_id, agent_id, session_message, **options)
        key = (session_id, agent_id, _MESSAGES, session_message.message_id)
        self._write(key, session_message.to_dict(), create, "create_message")

    def read_message(
        self, own: Any, session_id: str, agent_id: str, message_id: int, **options: Any
    ) -> SessionMessage | None:
        """Return a message."""
        read = partial(own, session_id, agent_id, message_id, **options)
        found = self._read((session_id, agent_id, _MESSAGES, message_id), read)
        return None if found is None else SessionMessage.from_dict(found)

    def update_message(
        self, own: Any, session_id: str, agent_id: str, session_message: Any, **options: Any
    ) -> None:
        """Store a message again."""
        update = partial(own, session_id, agent_id, session_message, **options)
        key = (session_id, agent_id, _MESSAGES, session_message.message_id)
        self._write(key, session_message.to_dict(), update, "update_message")

    def list_messages(
        self,
        own: Any,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **options: Any,
    ) -> list[SessionMessage]:
        """Return the messages of an agent in order."""
        of = (session_id, agent_id, _MESSAGES)

        def read() -> list[Any]:
            listed = own(session_id, agent_id, limit=limit, offset=offset, **options)
            return [message.to_dict() for message in listed]

        def ours() -> list[Any]:
            known = sorted(key[3] for key in self._of(self._known, of) if key[3] >= offset)
            messages = [self._known[(*of, number)] for number in known]
            return [it for it in messages if it is not None][:limit]

        is_written = bool(self._of(self._written, of))
        key = _text("list", *of, limit, offset)
        found = self._stored.read(key, read, ours, is_written=is_written)
        for message in found:
            self._known[(*of, message["message_id"])] = message
        return [SessionMessage.from_dict(message) for message in found]

    def create_multi_agent(
        self, own: Any, session_id: str, multi_agent: Any, **options: Any
    ) -> None:
        """Store a graph or swarm."""
        self._write_orchestrator(own, session_id, multi_agent, "create_multi_agent", options)

    def read_multi_agent(
        self, own: Any, session_id: str, multi_agent_id: str, **options: Any
    ) -> dict[str, Any] | None:
        """Return a graph or swarm."""
        read = partial(own, session_id, multi_agent_id, **options)
        found: dict[str, Any] | None = self._read((session_id, _ORCHESTRATOR, multi_agent_id), read)
        return found

    def update_multi_agent(
        self, own: Any, session_id: str, multi_agent: Any, **options: Any
    ) -> None:
        """Store a graph or swarm again."""
        self._write_orchestrator(own, session_id, multi_agent, "update_multi_agent", options)

    def _write_orchestrator(
        self, own: Any, session_id: str, multi_agent: Any, name: str, options: dict[str, Any]
    ) -> None:
        key = (session_id, _ORCHESTRATOR, multi_agent.id)
        write = partial(own, session_id, multi_agent, **options)
        self._write(key, multi_agent.serialize_state(), write, name)

    def _read(self, key: _Key, own: Callable[[], Any]) -> Any:
        def read() -> Any:
            found = own()
            return found.to_dict() if hasattr(found, "to_dict") else found

        ours = partial(self._known.get, key)
        found = self._stored.read(_text("read", *key), read, ours, is_written=key in self._written)
        self._known.setdefault(key, found)
        return found

    def _write(self, key: _Key, record: Any, own: Callable[[], Any], name: str) -> None:
        self._stored.write(_text(name, *key), own)
        self._put(key, record)

    def _put(self, key: _Key, record: Any) -> None:
        self._known[key] = record
        self._written.add(key)

    @staticmethod
    def _of(keys: Any, prefix: _Key) -> list[_Key]:
        return [key for key in keys if key[: len(prefix)] == prefix and len(key) > len(prefix)]


def _text(*key: Any) -> str:
    return " ".join(map(str, key))
