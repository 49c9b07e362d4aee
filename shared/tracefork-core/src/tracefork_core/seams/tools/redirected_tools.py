"""Functions whose calls are exchanges in the sessions that name them, and plain calls elsewhere.

The function object itself is redirected (`patching.code_swap`), so every reference to it counts. A
call looks up what the function is in its own session. The last session that named it undoes that.
"""

from __future__ import annotations

import os
import threading
from types import FunctionType

from tracefork_core.exchange.contract import Effect, Session
from tracefork_core.patching.code_swap import copied, redirect
from tracefork_core.seams.tools.definition import Tool
from tracefork_core.seams.tools.tool import MARK, wrapped

_redirected: dict[FunctionType, _Redirected] = {}
_lock = threading.RLock()


class _Redirected:
    """A function that at least one open session has made a tool."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._copy = copied(function)
        self._tools: dict[int, Tool] = {}
        self._called: set[int] = set()
        self._process = os.getpid()
        self._undo = redirect(function, wrapped(self._copy, self._tool_in))

    def _tool_in(self, session: Session) -> Tool | None:
        tool = self._tools.get(key := id(session))
        if tool is None and os.getpid() != self._process:
            # A forked child has another object for the one session that it belongs to.
            return next(reversed(self._tools.values()), None)
        self._called.add(key)
        return tool

    def add(self, session: Session, name: str, effect: Effect | None) -> None:
        known = self._tools.get(id(session))
        if known is None:
            known = self._tools[id(session)] = Tool(self._copy, effect, name, ())
            # Adapters read the effect here, where a framework made its own tool of the function.
            self._function.__dict__.setdefault(MARK, known)
        elif known.effect is None:
            known.effect = effect

    def was_called_in(self, session: Session) -> bool:
        return id(session) in self._called

    def remove(self, session: Session) -> bool:
        """Forget a session, and return whether it was the last."""
        mine = self._tools.pop(id(session), None)
        self._called.discard(id(session))
        if mine is not None and self._function.__dict__.get(MARK) is mine:
            del self._function.__dict__[MARK]
        if self._tools:
            return False
        self._undo()
        return True


def make_tool(session: Session, function: FunctionType, name: str, effect: Effect | None) -> None:
    """Let calls of a function be exchanges in a session; the first name and effect count."""
    with _lock:
        entry = _redirected.get(function)
        if entry is None:
            entry = _redirected[function] = _Redirected(function)
        entry.add(session, name, effect)


def was_called(session: Session, function: FunctionType) -> bool:
    """Return whether a function that is a tool was called in a session, in this process."""
    entry = _redirected.get(function)
    return entry is not None and entry.was_called_in(session)


def forget(session: Session) -> None:
    """Undo every `make_tool` of a session."""
    with _lock:
        for function, entry in list(_redirected.items()):
            if entry.remove(session):
                del _redirected[function]
