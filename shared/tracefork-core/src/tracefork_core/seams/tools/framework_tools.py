"""Record the tools of a framework, which are known by name and arguments, not by a function.

A framework calls its tools by name, passes objects of its own besides what the model said, and
returns classes of its own. So the caller of `tool_exchange` says which arguments are compared, and
`FrameworkValues` converts the framework's classes to data, by a name and their fields:

    {"langchain": "ToolMessage", "content": "sunny", "status": "error"}
    {"langchain": "dict", "pairs": [["langchain", "a dictionary that would look like one of them"]]}

A name on a tape is looked up in a table of the framework's adapter, and nowhere else. Objects of
other classes stay as they are: `values` accepts plain values, and refuses others by name.

What a tool changes besides returning a result is a part of its exchange, too: see `changes`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from tracefork_core.errors import ReplayError, UsageError
from tracefork_core.exchange.contract import Effect
from tracefork_core.seams.tools.changes import Changes, ChangingCall, Outcome
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool
from tracefork_core.seams.tools.tool import MARK, session_here

_DICT, _OUTCOME = "dict", "outcome"
_NOT_IN_NAMES = re.compile(r"^[^\w]|[^\w.:/-]")


class FrameworkValues:
    """Converts values of a framework's classes to plain ones and back; adapters derive from it.

    This class itself knows no framework: its values are plain already.

    Attributes:
        tag: the name of the framework, a key in the data of each of its objects.
    """

    tag: ClassVar[str] = "tracefork"

    def fields(self, value: object) -> dict[str, Any] | None:
        """Return the fields of a value; None if its class is not one of the framework's."""
        return None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        """Return an object of the named class with these fields; any exception refuses them."""
        raise LookupError(name)

    def said(self, text: str) -> object:
        """Return what the framework expects of a tool where a fork gives a text instead."""
        return text

    def hold(self, value: object) -> bool:
        """Return whether a replay can rebuild a value, without an annotation that says how."""
        from tracefork_core.seams.tools.values import kept, rebuilt

        try:
            body = kept(self.encode(value)).body
            again = self.decode(rebuilt(body, None))
            return type(again) is type(value) and kept(self.encode(again)).body == body
        except Exception:  # a class of the user's may raise anything
            return False

    def encode(self, value: object) -> object:
        """Return `value` with objects of the framework as data; all else is unchanged."""
        if type(value) is Outcome:
            parts = (value.result, value.changes, value.error)
            return {self.tag: _OUTCOME, "parts": [self.encode(part) for part in parts]}
        if (fields := self.fields(value)) is not None:
            encoded = {name: self.encode(field) for name, field in fields.items()}
            return {self.tag: type(value).__name__, **encoded}
        if type(value) is dict:
            if self.tag in value:
                return {self.tag: _DICT, "pairs": [self.encode([*pair]) for pair in value.items()]}
            return {name: self.encode(item) for name, item in value.items()}
        return _each(value, self.encode)

    def decode(self, value: object) -> object:
        """Undo `encode`.

        Raises:
            ReplayError: the data does not fit the framework's classes.
        """
        if type(value) is not dict:
            return _each(value, self.decode)
        fields: dict[str, Any] = {name: self.decode(item) for name, item in value.items()}
        if self.tag not in fields:
            return fields
        name = fields.pop(self.tag)
        try:
            if name == _DICT:
                return dict(fields["pairs"])
            return Outcome(*fields["parts"]) if name == _OUTCOME else self.built(name, fields)
        except Exception as error:  # a class may raise anything for unexpected fields
            raise ReplayError(
                f"tracefork: the recorded result of a tool does not fit the class {name!r:.60} as "
                f"it is now: {error!r:.200}. Record the run again."
            ) from error


PLAIN = FrameworkValues()


def _each(value: Any, change: Callable[[Any], object]) -> object:
    kind = type(value)
    return kind(map(change, value)) if kind is list or kind is tuple else value


@dataclass(frozen=True, slots=True)
class ToolMark:
    """The options of `@tracefork.tool` on a function."""

    effect: Effect | None
    raises: tuple[type[Exception], ...]
    verifier: bool = False


def tool_mark(function: object) -> ToolMark | None:
    """Return the options of `@tracefork.tool` on a function; None if it has none."""
    tool = getattr(function, MARK, None)
    if not isinstance(tool, Tool):
        return None
    return ToolMark(tool.effect, tool.failures.listed, tool.verifier)


def tool_exchange(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., object],
    values: FrameworkValues = PLAIN,
    *,
    effect: Effect | None = None,
    raises: Iterable[type[Exception]] = (),
    returns: Callable[..., object] | None = None,
    function: object = None,
) -> object:
    """Return the result of `run(**arguments)`, or the recorded one: an exchange, as with `@tool`.

    Outside a session, and inside another tool, it only calls `run`.

    Args:
        name: the name of the tool. On the tape it has `_` for what no name there may hold.
        arguments: the arguments, compared as JSON; a fork may change some.
        run: the function that does the work.
        values: converts results of the framework's own classes, if it has some.
        effect: the side effects of the tool; without it, it may be a write.
        raises: exceptions that keep their class, besides the builtin ones.
        returns: the function whose return annotation names the classes in the result.
        function: the function of the user's that does the work. `@tracefork.tool` on it adds
            exceptions to `raises`, says the effect if `effect` does not, and whether it is a
            verifier.

    Raises:
        TraceforkError: the session has failed, or fails with this call.
        UsageError: the effect is invalid; an argument has no JSON form (the tool does not run), or
            a replay could not rebuild the result (it has run; the replay raises the same).
    """
    if (session := session_here()) is None:
        return run(**arguments)
    from tracefork_core.seams.tools import calls as tool_calls

    tool = _Named(name, run, values, effect, raises, returns, function)
    return tool_calls.call(tool, session, (), dict(arguments))


async def atool_exchange(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., Awaitable[object]],
    values: FrameworkValues = PLAIN,
    *,
    effect: Effect | None = None,
    raises: Iterable[type[Exception]] = (),
    returns: Callable[..., object] | None = None,
    function: object = None,
    changes: Changes | None = None,
) -> object:
    """Do the same as `tool_exchange`, and await `run`.

    `changes` notes what the tool changes besides returning a result, and makes these changes where
    it is answered from the tape.
    """
    if (session := session_here()) is None:
        return await run(**arguments)
    from tracefork_core.seams.tools import calls as tool_calls

    async def changing(**arguments: Any) -> object:
        try:
            with call.running():
                result = await run(**arguments)
        except Exception as error:
            return await call.raised(error)
        return await call.returned(result)

    work = changing if changes else run
    tool = _Named(name, work, values, effect, raises, returns or run, function)
    call = ChangingCall(name, changes or Changes(), values.fields, tool.failures.listed)
    answer = await tool_calls.acall(tool, session, (), dict(arguments))
    return await call.ended(answer) if changes else answer


async def atool_stream(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., AsyncGenerator[object, None]],
    values: FrameworkValues = PLAIN,
    *,
    effect: Effect | None = None,
    raises: Iterable[type[Exception]] = (),
    returns: Callable[..., object] | None = None,
    function: object = None,
) -> AsyncGenerator[Any, None]:
    """Do the same for a tool that yields: each value of `run(**arguments)` is a delivery."""
    if (session := session_here()) is None:
        items = run(**arguments)
    else:
        from tracefork_core.seams.tools import streams as tool_streams

        tool = _Named(name, run, values, effect, raises, returns, function)
        items = tool_streams.acall(tool, session, (), dict(arguments))
    try:
        async for item in items:
            yield item
    finally:
        await items.aclose()


class _Named(Tool):
    """A tool without a signature: it takes any arguments."""

    def __init__(
        self,
        name: str,
        run: Callable[..., Any],
        values: FrameworkValues,
        effect: Effect | None,
        raises: Iterable[type[Exception]],
        returns: Callable[..., object] | None,
        function: object,
    ) -> None:
        mark = tool_mark(function) or ToolMark(None, ())
        name = _NOT_IN_NAMES.sub("_", name) or "_"
        raises = (*raises, *mark.raises)
        super().__init__(run, effect or mark.effect, name, raises, verifier=mark.verifier)
        self._values = values
        self.annotated = returns or run

    def keep(self, value: object, *, ending: bool = False) -> tuple[bytes, Any]:
        """Return a result as bytes for the tape, and as the value that both runs get."""
        body, plain = super().keep(self._values.encode(value), ending=ending)
        given = self._values.decode(plain)
        # Compared as bytes: some objects, and nan, are not equal to themselves.
        if super().keep(self._values.encode(given), ending=ending)[0] != body:
            raise UsageError(
                f"tracefork: the tool {self.name} has run, but a replay could not rebuild its "
                f"result: it comes back as {given!r:.60}. Return plain values."
            )
        return body, given

    def rebuild(self, body: bytes, *, ending: bool = False) -> Any:
        """Return the recorded result as a value for the agent."""
        return self._values.decode(super().rebuild(body, ending=ending))

    def said(self, text: bytes) -> Any:
        return self._values.said(text.decode())

    def _bound(self, args: Args, kwargs: Kwargs) -> Any:
        return SimpleNamespace(arguments=kwargs, args=(), kwargs=kwargs)
