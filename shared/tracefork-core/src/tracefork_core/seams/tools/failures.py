"""What a tool raises: the same class in a recording and in its replay, or a `ToolError` in both.

A tape holds the name of a class and a message, and its names import nothing. So an exception comes
back if its class is one of Python's own, or one that the tool lists, and is built from its
message alone; whatever else it carried is gone, in the recording too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tracefork_core.errors import ToolError, UsageError
from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.failures import BUILTINS

# The one word of our own: what the tool returned could not be kept.
_BUILTINS: dict[str, type[Exception]] = {**BUILTINS, UsageError.__name__: UsageError}


class Failures:
    """The exceptions of one tool. `raises` are those that come back beside the builtins."""

    def __init__(self, tool: str, raises: Iterable[type[Exception]] = ()) -> None:
        self._tool = tool
        self._listed: dict[str, type[Exception]] = {}
        for kind in raises:
            if Exception not in getattr(kind, "__mro__", ()):
                raise UsageError(f"tracefork: {tool} raises {kind!r}: list classes of Exception.")
            if self._listed.setdefault(_name(kind), kind) is not kind:
                raise UsageError(f"tracefork: {tool} raises two classes called {kind.__name__}.")

    @property
    def listed(self) -> tuple[type[Exception], ...]:
        """The exceptions that come back beside the builtins."""
        return tuple(self._listed.values())

    def failure(self, error: Exception) -> Failure:
        """Return what goes onto the tape of an exception."""
        kind: type = type(error)
        if _BUILTINS.get(kind.__name__) is not kind:
            kind = next((base for base in kind.__mro__ if base in self.listed), kind)
        text = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)
        name = _name(kind)
        if self._listed.get(name, kind) is not kind:
            name = _full_name(kind)
        return Failure(name, text.encode("utf-8", "backslashreplace").decode())

    def exception(self, failure: Failure) -> Exception:
        """Return the exception that a failure on a tape stands for."""
        kind = self._listed.get(failure.kind) or _BUILTINS.get(failure.kind)
        if kind is not None:
            try:
                error = kind(failure.message)
                str(error)
            except Exception:  # of a class that is not built from a message alone
                return ToolError(failure.kind, failure.message)
            return error
        error = ToolError(failure.kind, failure.message)
        error.add_note(
            f"tracefork: {self._tool} raised a {failure.kind}. `@tool(raises=({failure.kind},))` "
            "keeps that class, if it can be built from its message alone."
        )
        return error

    def seen(self, error: Exception, failure: Failure) -> Exception:
        """Return what the agent sees of an exception: what it will see of the tape."""
        told = self.exception(failure)
        if type(told) is type(error) and told.args == error.args and not vars(error):
            return error
        return told


def _name(kind: type) -> str:
    """Return the name of a class; one that only looks like a builtin is named in full."""
    name = kind.__name__
    if _BUILTINS.get(name, kind) is kind:
        return name
    return _full_name(kind)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
