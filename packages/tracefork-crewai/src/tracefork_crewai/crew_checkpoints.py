"""Stand in for CrewAI's own checkpoints: a replay or fork keeps those that it makes in memory.

A run that continues from a checkpoint of an earlier one reads it from the tape. The place of each
checkpoint, whose name holds a time and a random id, is on the tape as well.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from crewai.state.provider.core import BaseProvider

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed
from tracefork_crewai.reads import Reads

_NAMES = ("checkpoint", "acheckpoint", "from_checkpoint", "afrom_checkpoint", "prune")


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each storage of checkpoints."""
    put_in_front(patches, BaseProvider, _NAMES, Checkpoints, kind="checkpoints", same=_same)


def _same(_: Any) -> Hashable:
    return "checkpoints"  # CrewAI guesses the class from the file, which may be gone at replay.


class Checkpoints:
    """The checkpoints of all providers, as one session sees them."""

    def __init__(self, _: object, state: State) -> None:
        self._is_answered = state.is_answered
        self._reads = Reads(state)
        self._made: dict[str, str] = {}

    def checkpoint(self, own: Any, data: str, location: str, **options: Any) -> Any:
        """Store a checkpoint and return where."""
        return self._at(
            self._reads.read(_key(location), lambda: own(data, location, **options)), data, location
        )

    async def acheckpoint(self, own: Any, data: str, location: str, **options: Any) -> Any:
        """Do the same in async code."""

        async def stored() -> Any:
            return await own(data, location, **options)

        return self._at(await self._reads.aread(_key(location), stored), data, location)

    def from_checkpoint(self, own: Any, location: str) -> Any:
        """Return the data of a checkpoint."""
        if location in self._made:
            return self._made[location]
        return _text(self._reads.read(location, lambda: _fields(own(location))))

    async def afrom_checkpoint(self, own: Any, location: str) -> Any:
        """Do the same in async code."""
        if location in self._made:
            return self._made[location]

        async def found() -> Any:
            return _fields(await own(location))

        return _text(await self._reads.aread(location, found))

    def prune(self, own: Any, *args: Any, **options: Any) -> Any:
        """Delete old checkpoints, but none of an earlier run in a replay or fork."""
        if self._is_answered:
            return 0
        with undisturbed():
            return own(*args, **options)

    def _at(self, recorded: Any, data: str, location: str) -> str:
        """Note the data of a checkpoint; one that the recording did not make gets a new place."""
        place = str(recorded)
        if recorded is None or (self._is_answered and place in self._made):
            place = f"{location}#{len(self._made)}"
        self._made[place] = data
        return place


def _key(location: str) -> str:
    return f"made in {location}"


def _fields(data: Any) -> Any:
    """Return a checkpoint's fields: the tape masks secrets in those, and not within a text."""
    with suppress(ValueError):
        return {"fields": json.loads(data)}
    return data


def _text(found: Any) -> Any:
    return json.dumps(found["fields"]) if isinstance(found, dict) else found
