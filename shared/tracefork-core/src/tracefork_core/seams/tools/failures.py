"""Convert exceptions of tools: the same class in recording and replay, or a `ToolError` in both.

A tape holds the name of a class and a message, and a name on a tape imports nothing. So an
exception keeps its class if that is one of Python's own, or listed by the tool (`raises`). It is
rebuilt from its message alone; all else that it carried is lost, in the recording, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tracefork_core.errors import ToolError, UsageError
from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.failures import BUILTINS

# The only class of tracefork here: it is raised if the result of a tool cannot be recorded.
_BUILTINS: dict[str, type[Exception]] = {**BUILTINS, UsageError.__name__: UsageError}


class Failures:
    """The exceptions of one tool. Those in `raises` keep their class, besides the builtins."""

    def __init__(self, tool: str, raises: Iterable[type[Exception]] = ()) -> None:
        self._tool = tool
        self._listed: dict[str, type[Exception]] = {}
        for kind in raises:
            if Exception not in getattr(kind, "__mro__", ()):
                raise UsageError(
                    f"tracefork: raises of {tool} must list classes of Exception (got {kind!r})."
                )
            if self._listed.setdefault(_name(kind), kind) is not kind:
                raise UsageError(
                    f"tracefork: raises of {tool} lists two classes called {kind.__name__}. List "
                    "one of them."
                )

    @property
    def listed(self) -> tuple[type[Exception], ...]:
        """The exceptions that keep their class, besides the builtins."""
        return tuple(self._listed.values())

    def failure(self, error: Exception) -> Failure:
        """Return an exception in the form that the tape stores."""
        kind: type = type(error)
        if _BUILTINS.get(kind.__name__) is not kind:
            kind = next((base for base in kind.__mro__ if base in self.listed), kind)
        text = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)
        name = _name(kind)
        if self._listed.get(name, kind) is not kind:
            name = _full_name(kind)
        return Failure(name, text.encode("utf-8", "backslashreplace").decode())

    def exception(self, failure: Failure) -> Exception:
        """Rebuild the exception of a recorded failure."""
        kind = self._listed.get(failure.kind) or _BUILTINS.get(failure.kind)
        if kind is not None:
            try:
                error = kind(failure.message)
                str(error)
            except Exception:  # the class cannot be built from a message alone
                return ToolError(failure.kind, failure.message)
            return error
        error = ToolError(failure.kind, failure.message)
        error.add_note(
            f"tracefork: {self._tool} raised a {failure.kind}. To keep that class, use "
            f"`@tool(raises=({failure.kind},))`; it must be possible to build it from its message."
        )
        return error

    def seen(self, error: Exception, failure: Failure) -> Exception:
        """Return the exception that the agent gets, which is equal to that of a replay."""
        rebuilt = self.exception(failure)
        if type(rebuilt) is type(error) and rebuilt.args == error.args and not vars(error):
            return error
        return rebuilt


def _name(kind: type) -> str:
    """Return the name of a class, with its module if it is not the builtin of that name."""
    name = kind.__name__
    if _BUILTINS.get(name, kind) is kind:
        return name
    return _full_name(kind)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
