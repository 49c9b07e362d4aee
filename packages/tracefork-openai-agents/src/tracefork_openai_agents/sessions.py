"""Stand in for sessions, the SDK's memory of conversations, which outlives a run.

A recording uses the user's session, and notes on the tape what it gives. A replay or fork leaves it
alone: each read gets the recorded answer. A fork that has written something else by then reads what
it last read, with its own changes.

Sessions that a provider keeps make requests, which are on the tape anyway. A class that does not
derive from `SessionABC` is found when a run gets an object of it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable
from functools import partial, wraps
from hashlib import sha256
from typing import Any

import msgspec
from agents import run
from agents.memory import (
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    SQLiteSession,
    session,
)

from tracefork_core.adapters import (
    Patches,
    State,
    answering_tape,
    fork_point,
    put_in_front,
    undisturbed,
)

_ON_SERVER = (OpenAIConversationsSession, OpenAIResponsesCompactionSession)
_SNAPSHOT = "_get_compaction_snapshot"
_NAMES = ("get_items", "add_items", "pop_item", "clear_session", _SNAPSHOT)
_ADDITIONAL = (
    *("list_branches", "create_branch_from_turn", "create_branch_from_content"),
    *("switch_to_branch", "delete_branch", "store_run_usage"),
    *("get_conversation_turns", "find_turns_by_content", "get_conversation_by_turns"),
    *("get_tool_usage", "get_session_usage", "get_turn_usage"),
)
"""Methods of `AdvancedSQLiteSession`: what they return is as recorded, in forks too."""


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each session that keeps a conversation on this side."""
    _stand_in_for(patches, session.SessionABC)
    patches.wrap(SQLiteSession, "__init__", _in_memory)
    known: set[type] = set()
    for name in ("run", "run_streamed"):
        patches.wrap(run.AgentRunner, name, partial(_finding_classes, patches, known))


def _stand_in_for(patches: Patches, base: type) -> None:
    names = (*_NAMES, *_ADDITIONAL)
    put_in_front(patches, base, names, StoredSession, same=_same, is_exempt=_is_exempt)


def _is_exempt(held: object) -> bool:
    return isinstance(held, _ON_SERVER)


def _same(held: Any) -> Hashable | None:
    """Return what sessions of one conversation in one file share."""
    path = str(getattr(held, "db_path", ":memory:"))
    return None if path == ":memory:" else (path, held.session_id, type(held).__qualname__)


def _in_memory(init: Callable[..., None]) -> Callable[..., None]:
    """Make no file in a replay or fork: the stand-in answers, and nothing else uses it."""
    signature = inspect.signature(init)

    @wraps(init)
    def made(self: Any, *args: Any, **options: Any) -> None:
        if answering_tape() is None:
            init(self, *args, **options)
            return
        given = signature.bind(self, *args, **options)
        given.apply_defaults()
        path, given.arguments["db_path"] = given.arguments["db_path"], ":memory:"
        init(*given.args, **given.kwargs)
        self.db_path = path

    return made


def _finding_classes(
    patches: Patches, known: set[type], start: Callable[..., Any]
) -> Callable[..., Any]:
    @wraps(start)
    def started(self: Any, *args: Any, **options: Any) -> Any:
        given = options.get("session")
        for held in (given, getattr(given, "underlying_session", None)):
            if held is None or isinstance(held, session.SessionABC) or type(held) in known:
                continue
            known.add(type(held))
            _stand_in_for(patches, type(held))
        return start(self, *args, **options)

    return started


class StoredSession:
    """One conversation, as one session of tracefork sees it."""

    def __init__(self, held: Any, state: State) -> None:
        self._state = state
        self._settings = getattr(held, "session_settings", None)
        self._items: list[Any] = []
        self._written = ""

    async def get_items(
        self, own: Any, limit: int | None = None, *args: Any, **options: Any
    ) -> Any:
        """Return the last items of the conversation."""
        key = f"get_items {limit} {args or ''}{options.get('branch_id') or ''}"
        most = limit if limit is not None else getattr(self._settings, "limit", None)
        read = partial(own, limit, *args, **options)
        items = await self._read(key, read, lambda: self._items[-most:] if most else self._items)
        if most is None:
            self._items = list(items)
        return items

    async def add_items(self, own: Any, items: list[Any], *args: Any, **options: Any) -> None:
        """Append to the conversation."""
        kept = _unpacked(_packed(items))  # Before the caller changes them.
        await self._write(partial(own, items, *args, **options), "add", kept)
        self._items = [*self._items, *kept]

    async def pop_item(self, own: Any, *args: Any, **options: Any) -> Any:
        """Remove the last item, and return it."""
        read = partial(own, *args, **options)
        item = await self._read("pop_item", read, lambda: (self._items or [None])[-1])
        self._note_write("pop")
        self._items = self._items[:-1]
        return item

    async def clear_session(self, own: Any, *args: Any, **options: Any) -> None:
        """Remove all items."""
        await self._write(partial(own, *args, **options), "clear")
        self._items = []

    async def _get_compaction_snapshot(self, own: Any, *args: Any, **options: Any) -> Any:
        """Return the last items, with a function that replaces them in one step."""
        live: Any = None

        async def read() -> Any:
            nonlocal live
            live = await own(*args, **options)
            return None if live is None else [live.items, live.complete]

        found = await self._read(f"snapshot {args}", read, lambda: None)
        if found is None:
            return None

        async def replace_suffix(start: int, output: list[Any]) -> Any:
            replace = partial(live.replace_suffix, start, output) if live else None
            done = await self._read("replace_suffix", replace, lambda: False)
            self._note_write("replace", [start, output])
            return done

        return session._CompactionSnapshot(*found, replace_suffix)  # noqa: SLF001 - the SDK's

    def __getattr__(self, name: str) -> Any:
        """Return what `AdvancedSQLiteSession` has in addition."""
        if name not in _ADDITIONAL:
            raise AttributeError(name)

        async def called(own: Any, *args: Any, **options: Any) -> Any:
            key = f"{name} {json.dumps([args, options], default=lambda it: type(it).__name__)}"
            return await self._read(key, partial(own, *args, **options), lambda: None)

        return called

    async def _read(self, key: str, own: Any, otherwise: Callable[[], Any]) -> Any:
        n = self._state.number(key)
        if not self._state.is_answered:
            with undisturbed():
                found = await _awaited(own())
        else:
            noted = [it for it in self._state.recorded(key, n) if it.n == n]
            is_same = noted and (fork_point() is None or noted[0].answer == self._written)
            found = _unpacked(noted[0].values[0][1]) if is_same else otherwise()
        self._state.note(key, n, self._written, [("msgpack", _packed(found))])
        return found

    async def _write(self, own: Any, kind: str, items: object = None) -> None:
        if not self._state.is_answered:
            with undisturbed():
                await _awaited(own())
        self._note_write(kind, items)

    def _note_write(self, kind: str, items: object = None) -> None:
        written = self._written.encode() + _packed([kind, items])
        self._written = sha256(written).hexdigest()[:32]


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _packed(value: object) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def _unpacked(data: bytes) -> Any:
    return msgspec.msgpack.decode(data)


def _plain(value: Any) -> object:
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else str(value)
