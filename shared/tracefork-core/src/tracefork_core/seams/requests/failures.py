"""Exceptions of requests and urllib3 on tape: by name and message, and back through a fixed table.

requests wraps what urllib3 raises, and agents look inside, at `error.args[0]` and its `reason`: the
names of all are kept, as in `ConnectionError(MaxRetryError(NewConnectionError))`. What breaks in a
body is urllib3's alone, and requests makes its own of it again at replay.
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
"""Classes whose words do not come from a message."""


class Failures:
    """The table of one requests and its urllib3."""

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
        """The names of what an attempt may end in."""
        return frozenset(self._outer)

    def failure(self, error: BaseException) -> Failure:
        """Return an exception that an attempt ended in as it goes onto the tape."""
        kind, within = type(error).__name__, error.args[0] if error.args else None
        if kind in self._outer and (name := self._name(within)):
            reason = self._name(getattr(within, "reason", None))
            kind = f"{kind}({name}({reason}))" if reason else f"{kind}({name})"
        return Failure(kind, str(error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Return the recorded failure of an attempt as the exception it was."""
        found = _KIND.fullmatch(failure.kind)
        if found and found[1] in self._outer:
            said = self._within(found[2], found[3], failure.message)
            return self._outer[found[1]](said, request=request)  # type: ignore[no-any-return]
        if found and found[1] in self._inner:
            return _spelled(self._inner[found[1]], failure.message)
        if (builtin := builtin_of(failure)) is not None:
            return builtin
        message = f"{failure.kind}: {failure.message}"
        return self._plain(message, request=request)  # type: ignore[no-any-return]

    def _within(self, name: str | None, reason: str | None, message: str) -> Exception | str:
        """Return what requests wraps: an exception of urllib3, or the words alone."""
        if (kind := self._inner.get(name or "")) is None:
            return message
        led_to_it = self._inner.get(reason or "")
        return _spelled(kind, message, led_to_it and _spelled(led_to_it, _reason_in(message)))

    def _name(self, error: object) -> str | None:
        """Return the name of an exception of urllib3."""
        name = type(error).__name__
        return name if self._inner.get(name) is type(error) else None

    def in_body(self, failure: Failure) -> Exception:
        """Return what cut a body short as the exception of urllib3 that it was."""
        return _spelled(self._inner.get(failure.kind, self._broken), failure.message)

    def is_of_the_wire(self, error: BaseException) -> bool:
        """Return whether an exception cut a body short: what cannot be decoded came whole."""
        return isinstance(error, self._of_the_wire) and not isinstance(error, self._of_decoding)


def _classes(module: ModuleType, base: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and name not in _SPELLED_OTHERWISE
    }


def _reason_in(message: str) -> str:
    """Return what the reason said, out of the message of what it led to."""
    found = _CAUSED_BY.search(message)
    try:
        return str(ast.literal_eval(found[1])) if found else message
    except (ValueError, SyntaxError):
        return found[1] if found else message


def _spelled(kind: Any, message: str, reason: Exception | None = None) -> Exception:
    """Return an exception of urllib3, whose classes want the pool that it came from."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    vars(error).update(conn=None, pool=None, url=None, reason=reason)  # `pool` may be a property.
    return error  # type: ignore[no-any-return]
