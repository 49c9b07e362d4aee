"""Put the stores of model caches behind a session: a replay finds there what the recording found.

`ChatCompletionCache` asks its store before it asks a model. A store that an earlier run has filled,
on a disk or in Redis, would answer a replay or a fork in the place of its tape or of the model. So
a recording notes what each look gave, and a replay gets the same. A fork gets what the recording
found there and what it puts there itself.
"""

from __future__ import annotations

from typing import Any

from autogen_core import CacheStore
from autogen_core.models import CreateResult

from tracefork_autogen.values import Values
from tracefork_core.adapters import Patches, State, put_in_front, undisturbed

_VALUES = Values([CreateResult])
_LOST = "lost"
"""Noted where a store no longer has what the run has put there: it was full, or out of reach."""


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each store."""
    put_in_front(patches, CacheStore, ["get", "set"], _Store)


class _Store:
    """Stands in for one store in one session; `live` is its own method."""

    def __init__(self, _: Any, state: State) -> None:
        self._state = state
        self._own: dict[str, Any] = {}

    def get(self, live: Any, key: str, default: Any = None) -> Any:
        n = self._state.number(key)
        if self._state.is_answered:
            found = self._answer(key, n)
        else:
            with undisturbed():
                found = live(key)
        if key in self._own:
            if found is None:
                self._state.note(key, n, _LOST)
        elif found is not None and _VALUES.hold(found):
            self._state.note(key, n, _VALUES.encode(found))
        return default if found is None else found

    def set(self, live: Any, key: str, value: Any) -> None:
        self._own[key] = value
        if not self._state.is_answered:
            with undisturbed():
                live(key, value)

    def _answer(self, key: str, n: int) -> Any:
        looks = self._state.recorded(key, n)
        if any(look.n == n and look.answer == _LOST for look in looks):
            return None
        if key in self._own:
            return self._own[key]
        found = [look.answer for look in looks if look.answer != _LOST]
        return _VALUES.decode(found[0]) if found else None
