"""Give each replay and fork its own copy of objects that all runs of a process share.

A cache or a store keeps what an earlier run put into it. A fork would continue from what the replay
before it left there, and blame would judge that. So each session that is answered from a tape gets
its own object, which disappears with the session. A recording uses the shared object.

The replacement happens in the methods of the objects' classes, so it works for every caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import answering_tape

_Owned = Callable[[Any], Any]
"""Makes a session's own object from the shared one."""

# By the identity of the shared object. Holding it keeps its id from being reused.
_owned: WeakKeyDictionary[Tape, dict[int, tuple[object, Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def instrument(base: Any, names: Sequence[str], owned: _Owned) -> Callable[[], None]:
    """Replace methods of a class and of its present and future subclasses; return the undo."""
    replaced: list[tuple[type, str, Any]] = []

    def replace(kind: type) -> None:
        for name in names:
            if name in vars(kind):
                replaced.append((kind, name, vars(kind)[name]))
                setattr(kind, name, _instead(vars(kind)[name], name, owned))

    def arrive(kind: Any, /, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        replace(kind)

    waiting = [base]
    while waiting:
        kind = waiting.pop()
        if not any(kind is done for done, _, _ in replaced):
            replace(kind)
        waiting.extend(kind.__subclasses__())
    base.__init_subclass__ = classmethod(arrive)

    def undo() -> None:
        del base.__init_subclass__
        for kind, name, original in replaced:
            setattr(kind, name, original)

    return undo


def _instead(original: Any, name: str, owned: _Owned) -> Any:
    @wraps(original)
    def method(self: object, *args: Any, **kwargs: Any) -> Any:
        if (own := _of_session(self, owned)) is not None:
            return getattr(own, name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def _of_session(shared: object, owned: _Owned) -> Any:
    """Return the session's own object for a shared one; None if the shared one is to be used."""
    try:
        tape = answering_tape()
    except UsageError:
        return None  # Two sessions and no context: an exchange here raises this too.
    if tape is None:
        return None
    with _lock:
        known = _owned.setdefault(tape, {})
        if any(shared is own for _, own in known.values()):
            return None
        if id(shared) not in known:
            known[id(shared)] = shared, owned(shared)
        return known[id(shared)][1]
