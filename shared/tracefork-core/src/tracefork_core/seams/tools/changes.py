"""Note what a tool changes besides returning a result, and change it again where it is answered.

A framework gives its tools a context: they write to the state of the run, save files, or ask for a
confirmation. A replay does not run the tool, and later prompts read these changes. So they are a
part of the outcome of the call, on the tape beside its result:

    {"google-adk": "outcome", "parts": ["booked", {"state": {"seat": "12A"}}, null]}

The last part is the exception of a tool that changed something and then failed, or raised what a
message alone does not rebuild: as data, if the adapter's values know its class, or else as its
class and its message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.tools.failures import Failures

_recorded_tool: ContextVar[str | None] = ContextVar("tracefork_recorded_tool", default=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call that did more than return a result.

    `error` is the exception that it raised, or the class and the message of that.
    """

    result: object = None
    changes: object = None
    error: object = None


class Changes:
    """What one call of a tool changes; adapters derive from it."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is changed while the block lasts: the tool runs there."""
        yield

    async def made(self) -> object:
        """Return what was changed, as data; something false if nothing was."""
        return None

    async def make_again(self, made: Any) -> None:
        """Make recorded changes."""


class ChangingCall:
    """One call of a tool, with what it changes.

    Args:
        tool: the name of the tool.
        changes: what it changes.
        fields: the method of the adapter's values: which exceptions they convert.
        raises: exceptions that keep their class, besides the builtin ones.
    """

    def __init__(
        self,
        tool: str,
        changes: Changes,
        fields: Callable[[object], Mapping[str, object] | None],
        raises: Iterable[type[Exception]] = (),
    ) -> None:
        self.has_run = False
        self._tool = tool
        self._changes = changes
        self._fields = fields
        self._failures = Failures(tool, raises)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note what the tool changes: it runs in the block."""
        self.has_run = True
        token = _recorded_tool.set(self._tool)
        try:
            with self._changes.noted():
                yield
        finally:
            _recorded_tool.reset(token)

    async def returned(self, result: object) -> object:
        """Return what the tape holds of a call that returned a result."""
        made = await self._changes.made()
        return Outcome(result, made) if made else result

    async def raised(self, error: Exception) -> Outcome:
        """Return what the tape holds of a call that raised; raise it if that is no more than it."""
        if isinstance(error, TraceforkError):
            raise error
        made, is_known = await self._changes.made(), self._fields(error) is not None
        if not made and not is_known:
            raise error
        failure = self._failures.failure(error)
        return Outcome(None, made, error if is_known else [failure.kind, failure.message])

    async def ended(self, answer: object) -> object:
        """Return the result that the tape holds, or raise; make the changes if it did not run."""
        if not isinstance(answer, Outcome):
            return answer
        if answer.changes and not self.has_run:
            with crossing_seam():  # The tool drew no values that are on the tape.
                await self._changes.make_again(answer.changes)
        if isinstance(answer.error, Exception):
            raise answer.error
        if isinstance(answer.error, list):
            raise self._failures.exception(Failure(*answer.error))
        return answer.result


def recorded_tool() -> str | None:
    """Return the name of the tool that runs here as one exchange, if one does."""
    return _recorded_tool.get()
