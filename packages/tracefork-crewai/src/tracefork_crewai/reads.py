"""Note what a run reads of an object whose state outlives it, and answer from that at replay.

Flow states, task outputs, memories, knowledge, checkpoints and trained agents lie in files of the
user's. Each has a stand-in. While recording, it uses the object and notes on the tape what the run
read and had not written itself. In a replay or fork it never touches the object: it answers with
what the recording read and with what this run wrote, which it keeps in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tracefork_core.adapters import State, answering_tape, undisturbed

T = TypeVar("T")


def is_answered() -> bool:
    """Return whether this code runs in a replay or fork, in which no storage may be touched."""
    return answering_tape() is not None


class Reads:
    """What a run reads of one object, and had not written itself, on the tape.

    An answer that equals `nothing`, or the answer before it to the same question, is not noted.
    """

    def __init__(self, state: State, nothing: object = None) -> None:
        self._state = state
        self._nothing = nothing
        self._last: dict[str, bytes] = {}

    def read(self, key: str, own: Callable[[], T]) -> T:
        """Return what `own` finds, or what it found in the recording."""
        n = self._state.number(key)
        if self._state.is_answered:
            return self._recorded(key, n)  # type: ignore[no-any-return]
        with undisturbed():
            found = own()
        self._note(key, n, found)
        return found

    async def aread(self, key: str, own: Callable[..., Any]) -> Any:
        """Do the same, and await `own`."""
        n = self._state.number(key)
        if self._state.is_answered:
            return self._recorded(key, n)
        with undisturbed():
            found = await own()
        self._note(key, n, found)
        return found

    def _recorded(self, key: str, n: int) -> Any:
        noted = self._state.recorded(key, n)
        data = noted[-1].values[0][1] if noted else packed(self._nothing)
        found = msgspec.msgpack.decode(data)
        self._note(key, n, found)  # A fork is a recording, too.
        return found

    def _note(self, key: str, n: int, found: object) -> None:
        data = packed(found)
        if data != self._last.get(key, packed(self._nothing)):
            self._last[key] = data
            self._state.note(key, n, None, [("msgpack", data)])


def packed(value: object) -> bytes:
    """Return a value as MessagePack: data as it is, all else as its text."""
    return msgspec.msgpack.encode(value, enc_hook=str)
