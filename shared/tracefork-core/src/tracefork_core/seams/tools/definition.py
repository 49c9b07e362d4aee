"""Describe one tool: convert calls of it to requests, and its results to bytes and back."""

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
from tracefork_core.tape.digest import canonical

_EFFECTS = get_args(Effect)
_NAME = re.compile(r"\w[\w.:/-]*")
_OWNERS = ("self", "cls")

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Given = tuple[Args, Kwargs]


class Tool:
    """One function and its options.

    Attributes:
        function: the function that runs while recording.
        name: its name on the tape.
        effect: its side effects; None if unknown.
        verifier: whether a hybrid replay runs it again.
        failures: converts its exceptions.
        annotated: the function whose return annotation describes the result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        effect: Effect | None,
        name: str | None,
        raises: Iterable[type[Exception]],
        *,
        verifier: bool = False,
    ) -> None:
        if isinstance(function, (staticmethod, classmethod, type)) or not callable(function):
            raise UsageError(
                f"tracefork: @tool needs a function (got {function!r}). Put it directly above the "
                "function, below @staticmethod or @classmethod."
            )
        if effect is not None and effect not in _EFFECTS:
            raise UsageError(
                f"tracefork: effect must be one of {', '.join(_EFFECTS)} (got {effect!r})."
            )
        self.function = function
        self.name = _name_of(function) if name is None else name
        if not is_name(self.name):
            raise UsageError(
                f"tracefork: {self.name!r} is not a valid name of a tool. Give it a name of "
                "letters, digits and . : / - _: @tool(name=…)."
            )
        self.failures = Failures(self.name, raises)
        self.effect = effect
        self.verifier = verifier
        self.annotated = function

    def request(self, args: Args, kwargs: Kwargs) -> Request:
        """Return the request that stands for a call, to be compared.

        Raises:
            TypeError: the function does not take these arguments.
            UsageError: an argument has no JSON form.
        """
        from tracefork_core.seams.tools.values import NoValueError, compared

        try:
            body = compared(_compared_arguments(self._bound(args, kwargs)))
        except NoValueError as error:
            raise UsageError(
                f"tracefork: the tool {self.name} was not called: a tape cannot hold its argument "
                f"{error.where}, a {error.kind}{error.why}. Pass something that identifies it, or "
                "decorate a function further down that takes plain values."
            ) from error
        return Request("CALL", f"tool:{self.name}", (), body, "tool", self.effect)

    def instead(self, asked: Request, sends: Request, args: Args, kwargs: Kwargs) -> Given:
        """Return the arguments of a call after a fork has changed some.

        Raises:
            UsageError: the tool does not take an argument that the fork sets.
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
        """Return a result as bytes for the tape, and as the value that both runs get.

        Args:
            value: the value that the tool returned, or yielded.
            ending: whether a generator returned it.

        Raises:
            UsageError: a replay could not rebuild the value.
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
            f"tracefork: the tool {self.name} has run, but a replay could not rebuild its result, "
            f"a {type(value).__qualname__}{held}: {why}. Return plain values, or annotate the "
            f"return type{self._unread}."
        )

    def rebuild(self, body: bytes, *, ending: bool = False) -> Any:
        """Return the recorded result as a value for the agent.

        Raises:
            ReplayError: the function's annotation no longer fits the recorded result.
        """
        from tracefork_core.seams.tools.values import NoValueError, rebuilt

        try:
            # An answer that a fork drops has an empty body.
            return rebuilt(body or b"null", self._ending if ending else self._result)
        except NoValueError as error:
            raise ReplayError(
                f"tracefork: the recorded result of the tool {self.name} does not fit what the "
                f"tool returns now: {error.kind}{error.why}{self._unread}. Record the run again."
            ) from error

    def said(self, text: bytes) -> Any:
        """Return what the tool returns where a fork gives a text instead."""
        return self.rebuild(canonical(text.decode()))

    def _bound(self, args: Args, kwargs: Kwargs) -> inspect.BoundArguments:
        for signature in self._signatures:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                continue
            bound.apply_defaults()
            return bound
        if type(self.function) is FunctionType and not hasattr(self.function, "__wrapped__"):
            self.function(
                *args, **kwargs
            )  # Raises in Python's words, which agents show to a model.
        raise TypeError(f"{self.name}() does not take these arguments")

    @cached_property
    def _signatures(self) -> list[inspect.Signature]:
        """The signature of the innermost decorated function, and that of the called one."""
        try:
            inner = inspect.signature(self.function)
            outer = inspect.signature(self.function, follow_wrapped=False)
        except ValueError as error:
            raise UsageError(
                f"tracefork: the arguments of the tool {self.name} are unknown: {error}. Decorate "
                "a Python function that calls it."
            ) from error
        return [inner] if inner == outer else [inner, outer]

    @cached_property
    def _annotation(self) -> tuple[object, str]:
        """The return annotation of the function, and why it could not be resolved."""
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
            return None, f" (its annotation {hints['return']!r} cannot be resolved: {error})"

    @property
    def _unread(self) -> str:
        return self._annotation[1]

    @cached_property
    def _result(self) -> object:
        """The annotation of the returned, or yielded, values."""
        annotation, _ = self._annotation
        function = inspect.unwrap(self.function)
        if not (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)):
            return annotation
        items = get_args(annotation)
        return items[0] if items else None

    @cached_property
    def _ending(self) -> object:
        """The annotation of a generator's return value."""
        annotation, _ = self._annotation
        items = get_args(annotation)
        return items[2] if get_origin(annotation) is Generator and len(items) == 3 else None


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a tool on a tape."""
    return _NAME.fullmatch(text) is not None


def _compared_arguments(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return all arguments but the object of a method."""
    arguments = dict(bound.arguments)
    if (first := next(iter(arguments), None)) in _OWNERS:
        del arguments[first]
    return arguments


def _arguments(request: Request) -> dict[str, Any]:
    from tracefork_core.seams.tools.values import rebuilt

    values = rebuilt(request.body, None)
    return values if isinstance(values, dict) else {}


def _name_of(function: Callable[..., Any]) -> str:
    """Return "search" for a function, "Shop.search" for a method."""
    name = getattr(function, "__qualname__", None)
    if name is None:
        raise UsageError(f"tracefork: {function!r} has no name. Give it one: @tool(name=…).")
    return str(name).rpartition("<locals>.")[2]
