"""What is known of one tool: how a call of it is asked, and what its answers mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterable
from functools import cached_property, partial
from types import FunctionType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from tracefork_core.errors import ReplayError, UsageError
from tracefork_core.exchange.contract import Effect, Request
from tracefork_core.seams.tools.failures import Failures

_EFFECTS = get_args(Effect)
_NAME = re.compile(r"\w[\w.:/-]*")
_OWNERS = ("self", "cls")

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Given = tuple[Args, Kwargs]


class Tool:
    """One function and what was said of it.

    Attributes:
        function: what runs while recording.
        name: what it is called on the tape.
        effect: what it does to the world, where that was said.
        failures: what becomes of its exceptions.
        annotated: the function whose annotation says what it returns.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        effect: Effect | None,
        name: str | None,
        raises: Iterable[type[Exception]],
    ) -> None:
        if isinstance(function, (staticmethod, classmethod, type)) or not callable(function):
            raise UsageError(
                f"tracefork: {function!r} is no function. Put @tool next to the function, below "
                "@staticmethod or @classmethod."
            )
        if effect is not None and effect not in _EFFECTS:
            raise UsageError(f"tracefork: no effect {effect!r}: it is {', '.join(_EFFECTS)}.")
        self.function = function
        self.name = _name_of(function) if name is None else name
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"tracefork: a tool cannot be called {self.name!r}. Give it a name of letters, "
                "digits and . : / - _, as @tool(name=…)."
            )
        self.failures = Failures(self.name, raises)
        self.effect = effect
        self.annotated = function

    def request(self, args: Args, kwargs: Kwargs) -> Request:
        """Return a call as it is compared.

        Raises:
            TypeError: the function does not take these arguments.
            UsageError: one of them has no JSON.
        """
        from tracefork_core.seams.tools.values import NoValueError, compared

        try:
            body = compared(_told(self._bound(args, kwargs)))
        except NoValueError as error:
            raise UsageError(
                f"tracefork: the tool {self.name} was not called: its argument {error.where} is a "
                f"{error.kind}{error.why}, which no tape holds. Pass what identifies it, or "
                "decorate a function further down that takes plain values."
            ) from error
        return Request("CALL", f"tool:{self.name}", (), body, "tool", self.effect)

    def instead(self, asked: Request, sends: Request, args: Args, kwargs: Kwargs) -> Given:
        """Return the arguments of a call of which a fork has changed some.

        Raises:
            UsageError: the tool takes no such argument.
        """
        before, now = (_arguments(request) for request in (asked, sends))
        bound = self._bound(args, kwargs)
        for name in {**before, **now}:
            if name not in bound.arguments:
                raise UsageError(f"tracefork: the tool {self.name} takes no argument {name!r}.")
            if name not in now:
                del bound.arguments[name]
            elif before.get(name) != now[name]:
                bound.arguments[name] = now[name]
        return bound.args, bound.kwargs

    def keep(self, value: object, *, ending: bool = False) -> tuple[bytes, Any]:
        """Return a result as a tape holds it, and as both runs are given it.

        Args:
            value: what the tool returned, or yielded.
            ending: whether it is what a generator returned.

        Raises:
            UsageError: it could not be given again.
        """
        from tracefork_core.seams.tools.values import NoValueError, kept, rebuilt

        annotation = self._ending if ending else self._result
        inside: set[str] = set()
        try:
            before = kept(value)
            inside = {kind.__qualname__ for kind in before.classes if kind is not type(value)}
            again = rebuilt(before.body, annotation)
            if kept(again) == before:
                return before.body, again
            why = f"it comes back as {again!r:.60}"
        except NoValueError as error:
            where = f" (at {error.where})" if error.where else ""
            why = f"{error.kind}{error.why}{where}"
        held = f" with {', '.join(sorted(inside))} inside" if inside else ""
        raise UsageError(
            f"tracefork: the tool {self.name} has run, but a replay could not give again what it "
            f"returned, a {type(value).__qualname__}{held}: {why}. Return plain values, or "
            f"annotate what it returns{self._unread}."
        )

    def rebuild(self, body: bytes, *, ending: bool = False) -> Any:
        """Return what a tape holds of a result as the agent is given it.

        Raises:
            ReplayError: it is none that this function returns.
        """
        from tracefork_core.seams.tools.values import NoValueError, rebuilt

        try:
            # Nothing at all is what a fork leaves of an answer that it drops.
            return rebuilt(body or b"null", self._ending if ending else self._result)
        except NoValueError as error:
            raise ReplayError(
                f"tracefork: what the tape holds of the tool {self.name} is not what it returns "
                f"now: {error.kind}{error.why}{self._unread}."
            ) from error

    def _bound(self, args: Args, kwargs: Kwargs) -> inspect.BoundArguments:
        for signature in self._signatures:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                continue
            bound.apply_defaults()
            return bound
        if type(self.function) is FunctionType and not hasattr(self.function, "__wrapped__"):
            self.function(*args, **kwargs)  # In Python's own words, which a model may be told.
        raise TypeError(f"{self.name}() does not take these arguments")

    @cached_property
    def _signatures(self) -> list[inspect.Signature]:
        """That of the function that is decorated most deeply, and that of what is called."""
        try:
            inner = inspect.signature(self.function)
            outer = inspect.signature(self.function, follow_wrapped=False)
        except ValueError as error:
            raise UsageError(
                f"tracefork: nobody knows what the tool {self.name} takes: {error}. Decorate a "
                "function of Python that calls it."
            ) from error
        return [inner] if inner == outer else [inner, outer]

    @cached_property
    def _annotation(self) -> tuple[object, str]:
        """What the function says it returns, and why that is not known."""
        function: Any = inspect.unwrap(self.annotated)
        while isinstance(function, partial):
            function = function.func
        function = getattr(function, "__func__", function)
        hints = getattr(function, "__annotations__", {})
        if "return" not in hints:
            return None, ""
        try:
            alone = SimpleNamespace(__annotations__={"return": hints["return"]})
            names = getattr(function, "__globals__", {})
            return get_type_hints(alone, names, include_extras=True)["return"], ""
        except Exception as error:
            return None, f" (the annotation {hints['return']!r} is not understood: {error})"

    @property
    def _unread(self) -> str:
        return self._annotation[1]

    @cached_property
    def _result(self) -> object:
        """The annotation of what is returned, or yielded."""
        annotation, _ = self._annotation
        function = self.function
        if not (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)):
            return annotation
        items = get_args(annotation)
        return items[0] if items else None

    @cached_property
    def _ending(self) -> object:
        """The annotation of what a generator returns."""
        annotation, _ = self._annotation
        items = get_args(annotation)
        return items[2] if get_origin(annotation) is Generator and len(items) == 3 else None


def _told(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return what is compared of arguments: all but the object whose method it is."""
    told = dict(bound.arguments)
    if (first := next(iter(told), None)) in _OWNERS:
        del told[first]
    return told


def _arguments(request: Request) -> dict[str, Any]:
    from tracefork_core.seams.tools.values import rebuilt

    values = rebuilt(request.body, None)
    return values if isinstance(values, dict) else {}


def _name_of(function: Callable[..., Any]) -> str:
    """Return "search", or "Shop.search" of a method."""
    name = getattr(function, "__qualname__", None)
    if name is None:
        raise UsageError(f"tracefork: {function!r} has no name: give it one, as @tool(name=…).")
    return str(name).rpartition("<locals>.")[2]
