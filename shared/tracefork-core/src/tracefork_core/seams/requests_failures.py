"""Exceptions of requests and urllib3 on tape: by name and message, and back through a fixed table.

requests wraps what urllib3 raises, and agents look inside (`error.args[0]`): the name of both is
kept, as in `ConnectionError(ProtocolError)`. What breaks in a body is urllib3's alone, and requests
makes its own of it again at replay.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.builtin_failures import builtin_of

_KIND = re.compile(r"(\w+)(?:\((\w+)\))?")
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
        if kind in self._outer and self._inner.get(name := type(within).__name__) is type(within):
            kind = f"{kind}({name})"
        return Failure(kind, str(error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Return the recorded failure of an attempt as the exception it was."""
        found = _KIND.fullmatch(failure.kind)
        if found and found[1] in self._outer:
            inner = self._inner.get(found[2])
            said = _spelled(inner, failure.message) if inner else failure.message
            return self._outer[found[1]](said, request=request)  # type: ignore[no-any-return]
        if found and found[1] in self._inner:
            return _spelled(self._inner[found[1]], failure.message)
        if (builtin := builtin_of(failure)) is not None:
            return builtin
        message = f"{failure.kind}: {failure.message}"
        return self._plain(message, request=request)  # type: ignore[no-any-return]

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


def _spelled(kind: Any, message: str) -> Exception:
    """Return an exception of urllib3, whose classes want the pool that it came from."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.pool = error.url = error.reason = None
    return error  # type: ignore[no-any-return]
