"""Tools of a framework: known by a name and arguments, where `@tool` is known by a function.

A framework calls its tools by name, hands them things of its own beside what the model said, and
returns classes of its own. So here the caller says what is compared, and how its classes are told.

What a framework's tools return, as data: its classes by a name and their fields, and back.

    {"langchain": "ToolMessage", "content": "sunny", "status": "error"}
    {"langchain": "dict", "pairs": [["langchain", "a dictionary that would look like one of them"]]}

A name on a tape is looked up in a table of its framework's adapter, and nowhere else. What is of
none of its classes stays as it is: `values` holds plain values, and refuses others by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

from tracefork_core.errors import ReplayError, UsageError
from tracefork_core.exchange.contract import Effect
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool
from tracefork_core.seams.tools.tool import MARK, session_here


class Values(Protocol):
    """How results of a framework's classes become values that a tape holds, and come back."""

    def told(self, value: object) -> object:
        """Return `value` without the framework's classes; what is not theirs stays as it is."""

    def meant(self, value: object) -> object:
        """Return what `told` was given.

        Raises:
            ReplayError: it is nothing that `told` returns.
        """


@dataclass(frozen=True, slots=True)
class ToolMark:
    """What `@tracefork.tool` says of a function."""

    effect: Effect | None
    raises: tuple[type[Exception], ...]


def tool_mark(function: object) -> ToolMark | None:
    """Return what `@tracefork.tool` says of a function; None of one without."""
    tool = getattr(function, MARK, None)
    return ToolMark(tool.effect, tool.failures.listed) if isinstance(tool, Tool) else None


def tool_exchange(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., object],
    values: Values,
    *,
    effect: Effect | None = None,
    raises: Iterable[type[Exception]] = (),
    returns: Callable[..., object] | None = None,
) -> object:
    """Return what `run(**arguments)` returns, or returned: an exchange, as a call of `@tool` is.

    Outside a session, and inside of another tool, it just runs.

    Args:
        name: what the tool is called on the tape.
        arguments: what is compared, as JSON; a fork may change some.
        run: does the work.
        values: how results of the framework's own classes are told.
        effect: what it does to the world; where it is not said, it may be a write.
        raises: exceptions that come back as what they are, beside the builtin ones.
        returns: the function whose annotation says what objects the result is made of.

    Raises:
        TraceforkError: the session is poisoned, or this call poisons it.
        UsageError: no such name or effect; an argument that has no JSON (the tool does not run), a
            result that could not be given again (it has run; the replay raises the same).
    """
    if (session := session_here()) is None:
        return run(**arguments)
    from tracefork_core.seams.tools import calls as tool_calls

    tool = _Named(name, run, values, effect, raises, returns)
    return tool_calls.call(tool, session, (), dict(arguments))


async def atool_exchange(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., Awaitable[object]],
    values: Values,
    *,
    effect: Effect | None = None,
    raises: Iterable[type[Exception]] = (),
    returns: Callable[..., object] | None = None,
) -> object:
    """Await what `tool_exchange` calls."""
    if (session := session_here()) is None:
        return await run(**arguments)
    from tracefork_core.seams.tools import calls as tool_calls

    tool = _Named(name, run, values, effect, raises, returns)
    return await tool_calls.acall(tool, session, (), dict(arguments))


class _Named(Tool):
    """A tool without a signature: its arguments are those that it is given."""

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        values: Values,
        effect: Effect | None,
        raises: Iterable[type[Exception]],
        returns: Callable[..., object] | None,
    ) -> None:
        super().__init__(run, effect, name, raises)
        self._values = values
        self.annotated = returns or run

    def keep(self, value: object, *, ending: bool = False) -> tuple[bytes, Any]:
        """Return a result as a tape holds it, and as both runs are given it."""
        told = self._values.told(value)
        body, kept = super().keep(told, ending=ending)
        given = self._values.meant(kept)
        # By what the tape would hold: not all objects, and not all numbers, equal themselves.
        if super().keep(self._values.told(given), ending=ending)[0] != body:
            raise UsageError(
                f"tracefork: the tool {self.name} has run, but a replay could not give again what "
                f"it returned: it comes back as {given!r:.60}. Return plain values."
            )
        return body, given

    def rebuild(self, body: bytes, *, ending: bool = False) -> Any:
        """Return what a tape holds of a result as the agent is given it."""
        return self._values.meant(super().rebuild(body, ending=ending))

    def _bound(self, args: Args, kwargs: Kwargs) -> Any:
        return SimpleNamespace(arguments=kwargs, args=(), kwargs=kwargs)


_DICT = "dict"


class FrameworkValues:
    """Tells values in plain ones, and means them again. A framework's adapter has one of its own.

    Attributes:
        tag: the name of the framework: what is told of its classes has it as a key.
    """

    tag: ClassVar[str]

    def fields(self, value: object) -> dict[str, Any] | None:
        """Return what a value is made of; None where its class is none of the framework's."""
        raise NotImplementedError

    def built(self, name: str, fields: dict[str, Any]) -> object:
        """Return what has these fields, of the class of that name; any exception is a refusal."""
        raise NotImplementedError

    def told(self, value: object) -> object:
        """Return `value` without the framework's classes; what is not theirs stays as it is."""
        if (fields := self.fields(value)) is not None:
            told = {name: self.told(field) for name, field in fields.items()}
            return {self.tag: type(value).__name__, **told}
        if type(value) is dict:
            if self.tag in value:
                return {self.tag: _DICT, "pairs": [self.told([*pair]) for pair in value.items()]}
            return {name: self.told(item) for name, item in value.items()}
        return _each(value, self.told)

    def meant(self, value: object) -> object:
        """Return what `told` was given.

        Raises:
            ReplayError: it is nothing that `told` returns.
        """
        if type(value) is not dict:
            return _each(value, self.meant)
        fields: dict[str, Any] = {name: self.meant(item) for name, item in value.items()}
        if self.tag not in fields:
            return fields
        name = fields.pop(self.tag)
        try:
            return dict(fields["pairs"]) if name == _DICT else self.built(name, fields)
        except Exception as error:  # whatever a class makes of fields that it does not expect
            raise ReplayError(
                f"tracefork: what the tape holds of a tool is no {name!r:.60} as its code has it "
                f"now: {error!r:.200}"
            ) from error


def _each(value: Any, change: Callable[[Any], object]) -> object:
    kind = type(value)
    return kind(map(change, value)) if kind is list or kind is tuple else value
