"""Record exceptions of requests and urllib3 by name and message; rebuild them through a table.

requests wraps the exceptions of urllib3, and agents look inside, at `error.args[0]` and its
`reason`. So all names are recorded, as in `ConnectionError(MaxRetryError(NewConnectionError))`. A
body that breaks raises an exception of urllib3, which requests wraps at replay, too.
"""

from __future__ import annotations

import ast
import inspect
import re
from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.failures import builtin_of

_KIND = re.compile(r"(\w+)(?:\((\w+)(?:\((\w+)\))?\))?")
_CAUSED_BY = re.compile(r"\(Caused by \w+\((.*)\)\)", re.DOTALL)
_SPELLED_OTHERWISE = frozenset({"IncompleteRead", "InvalidChunkLength", "JSONDecodeError"})
"""Classes whose text is not their message."""


class Failures:
    """The exceptions of one module of requests and its urllib3."""

    def __init__(self, lib: ModuleType) -> None:
        outer, inner = lib.exceptions, lib.urllib3.exceptions
        self._plain = outer.RequestException
        self._broken = inner.ProtocolError
        self._of_decoding = inner.DecodeError
        self._of_the_wire = (inner.HTTPError, OSError)
        self._outer = _classes(outer, outer.RequestException)
        self._inner = _classes(inner, inner.HTTPError)

    @property
    def kinds(self) -> frozenset[str]:
        """The names of the exceptions that an attempt may end with."""
        return frozenset(self._outer)

    def failure(self, error: BaseException) -> Failure:
        """Return an exception of an attempt in the form that the tape stores."""
        kind, within = type(error).__name__, error.args[0] if error.args else None
        if kind in self._outer and (name := self._name(within)):
            reason = self._name(getattr(within, "reason", None))
            kind = f"{kind}({name}({reason}))" if reason else f"{kind}({name})"
        return Failure(kind, str(error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Rebuild the exception of a recorded failure of an attempt."""
        names = _KIND.fullmatch(failure.kind)
        if names and names[1] in self._outer:
            inner = self._within(names[2], names[3], failure.message)
            return self._outer[names[1]](inner, request=request)  # type: ignore[no-any-return]
        if names and names[1] in self._inner:
            return _spelled(self._inner[names[1]], failure.message)
        if (builtin := builtin_of(failure)) is not None:
            return builtin
        message = f"{failure.kind}: {failure.message}"
        return self._plain(message, request=request)  # type: ignore[no-any-return]

    def _within(self, name: str | None, reason: str | None, message: str) -> Exception | str:
        """Return what requests wraps: an exception of urllib3, or only its text."""
        if (kind := self._inner.get(name or "")) is None:
            return message
        led_to_it = self._inner.get(reason or "")
        return _spelled(kind, message, led_to_it and _spelled(led_to_it, _reason_in(message)))

    def _name(self, error: object) -> str | None:
        """Return the name of an exception if it is one of urllib3, else None."""
        name = type(error).__name__
        return name if self._inner.get(name) is type(error) else None

    def in_body(self, failure: Failure) -> Exception:
        """Rebuild the exception of urllib3 that cut a body short."""
        return _spelled(self._inner.get(failure.kind, self._broken), failure.message)

    def is_of_the_wire(self, error: BaseException) -> bool:
        """Return whether an exception cut a body short; a body that cannot be decoded is whole."""
        return isinstance(error, self._of_the_wire) and not isinstance(error, self._of_decoding)


def _classes(module: ModuleType, base: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and name not in _SPELLED_OTHERWISE
    }


def _reason_in(message: str) -> str:
    """Return the text of the reason, which the message of the outer exception contains."""
    cause = _CAUSED_BY.search(message)
    try:
        return str(ast.literal_eval(cause[1])) if cause else message
    except (ValueError, SyntaxError):
        return cause[1] if cause else message


def _spelled(kind: Any, message: str, reason: Exception | None = None) -> Exception:
    """Return an exception of urllib3 without a pool, which the constructors require."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    vars(error).update(conn=None, pool=None, url=None, reason=reason)  # `pool` may be a property.
    return error  # type: ignore[no-any-return]
