"""Note what a run reads of storage that outlives it, and answer replays and forks with that.

A recording asks the user's storage. A replay or fork leaves it alone: each read gets the recorded
answer. A fork may write something else than was recorded, so behind its fork point it reads what it
has written itself, and the recorded answers of everything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tracefork_core.adapters.session_here import fork_point
from tracefork_core.adapters.stand_ins import undisturbed
from tracefork_core.exchange.contract import State


class Stored:
    """One storage of the user's, as one session of tracefork sees it.

    Args:
        state: reads and writes the tape.
        errors: the classes of errors that the storage raises: they are answers, too.
    """

    def __init__(self, state: State, *errors: type[Exception]) -> None:
        self.is_answered = state.is_answered
        self._state = state
        self._errors = errors

    def read(
        self,
        key: str,
        own: Callable[[], Any],
        ours: Callable[[], Any],
        *,
        is_written: bool = False,
    ) -> Any:
        """Return what a read gives.

        Args:
            key: what is read: reads with one key are told apart by their number.
            own: asks the user's storage; its answer must be data.
            ours: returns what this run knows of it.
            is_written: whether this run has written to what is read.
        """
        n = self._state.number(key)
        answer = self._recorded(key, n, is_written=is_written)
        if answer is None:
            answer = self._answer(ours if self.is_answered else own)
        return self._noted(key, n, answer)

    async def aread(
        self,
        key: str,
        own: Callable[[], Awaitable[Any]],
        ours: Callable[[], Any],
        *,
        is_written: bool = False,
    ) -> Any:
        """Return what a read gives, where the storage is asynchronous."""
        n = self._state.number(key)
        answer = self._recorded(key, n, is_written=is_written)
        if answer is None:
            answer = self._answer(ours) if self.is_answered else await self._awaited(own)
        return self._noted(key, n, answer)

    def write(self, key: str, own: Callable[[], Any]) -> None:
        """Write to the user's storage while recording; note it only if it fails."""
        n = self._state.number(key)
        answer = self._recorded(key, n, is_written=True)
        if answer is None and not self.is_answered:
            answer = self._answer(own)
        if answer is not None and answer[0] is not None:
            self._noted(key, n, answer)

    async def awrite(self, key: str, own: Callable[[], Awaitable[Any]]) -> None:
        """Do as `write`, where the storage is asynchronous."""
        n = self._state.number(key)
        answer = self._recorded(key, n, is_written=True)
        if answer is None and not self.is_answered:
            answer = await self._awaited(own)
        if answer is not None and answer[0] is not None:
            self._noted(key, n, answer)

    def _recorded(self, key: str, n: int, *, is_written: bool) -> list[Any] | None:
        if not self.is_answered or (is_written and fork_point() is not None):
            return None
        noted = [it for it in self._state.recorded(key, n) if it.n == n]
        return msgspec.msgpack.decode(noted[0].values[0][1]) if noted else None

    def _answer(self, read: Callable[[], Any]) -> list[Any]:
        try:
            with undisturbed():
                return [None, read()]
        except self._errors as error:
            return _failed(error)

    async def _awaited(self, read: Callable[[], Awaitable[Any]]) -> list[Any]:
        try:
            with undisturbed():
                return [None, await read()]
        except self._errors as error:
            return _failed(error)

    def _noted(self, key: str, n: int, answer: list[Any]) -> Any:
        packed = msgspec.msgpack.encode(answer, enc_hook=str)
        self._state.note(key, n, None, [("msgpack", packed)])
        failure, value = msgspec.msgpack.decode(packed)
        if failure is not None:
            kinds = {kind.__name__: kind for kind in self._errors}
            raise kinds[failure[0]](failure[1])
        return value


def _failed(error: Exception) -> list[Any]:
    return [[type(error).__name__, str(error)], None]
