"""Put stand-ins in front of objects whose state outlives the run: databases, stores, caches.

While recording, a stand-in asks the object and notes on the tape what the run read. In a replay or
fork it answers from the tape and from what the run itself wrote, and leaves the object as it is.

The replacement happens in the methods of the objects' classes. So it works for objects made before
the session, for every caller, and for classes of the user's, also those defined later. What an
object does inside its own methods is left alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, TypeVar

from tracefork_core.exchange.contract import State
from tracefork_core.exchange.current import crossing_seam, current_session
from tracefork_core.patching.patch import Patches

_T = TypeVar("_T")

Replace = Callable[[type, str, Any], Any]
"""Takes a class, the name of one of its attributes and that; returns what takes its place."""

_working: ContextVar[bool] = ContextVar("tracefork_working", default=False)


def state_of(
    shared: object, kind: str, make: Callable[[State], _T], same: Hashable | None = None
) -> _T | None:
    """Return this session's stand-in for an object whose state outlives the run.

    `shared` is a database, a store or a cache of the user's. The stand-in asks it while recording
    (below `crossing_seam`, so that the tape holds none of its draws and requests) and notes what
    the run read. In a replay or fork it answers from the tape and from what the run itself wrote,
    and leaves the object alone. None outside a session and in a child process of one.

    Args:
        shared: the object.
        kind: what the tape calls it, a number added where a run uses several.
        make: makes the stand-in, once per session, from the `State` that reads and writes the tape.
        same: objects with an equal value share a stand-in, two connections to a database say. The
            path of a file says that the object keeps its data there, so no replay compares it.
    """
    session = current_session()
    if session is None or session.states is None:
        return None
    return session.states.of(shared, kind, make, same)


@contextmanager
def undisturbed(*, below_seam: bool = True) -> Iterator[None]:
    """Let an object work: no stand-in steps in, and nothing that it draws or asks is recorded.

    Without `below_seam`, draws and requests are recorded.
    """
    token = _working.set(True)
    try:
        with crossing_seam() if below_seam else nullcontext():
            yield
    finally:
        _working.reset(token)


def put_in_front(
    patches: Patches,
    base: Any,
    names: Sequence[str],
    make: Callable[[Any, State], Any],
    *,
    kind: str | None = None,
    same: Callable[[Any], Hashable | None] = lambda _: None,
    is_exempt: Callable[[Any], bool] = lambda _: False,
    replace: Mapping[str, Replace] | None = None,
) -> None:
    """Put stand-ins in front of the objects of a class and of its subclasses, until an undo.

    A stand-in has the methods `names`. Each gets the object's own bound method first, then the
    arguments; the stand-in of a coroutine function is one, too.

    Args:
        patches: where the replacements are undone.
        base: the class.
        names: the methods that are replaced, in each class that defines them.
        make: makes the stand-in, from an object and its `State`.
        kind: what the tape calls the objects; by default the names of their classes.
        same: returns what objects have in common that hold the same data; None if nothing.
        is_exempt: whether an object works as it is here.
        replace: how to replace other attributes, by their names.
    """
    others = replace or {}

    def instead(owner: type, name: str, original: Any) -> Any:
        if name in others:
            return others[name](owner, name, original)
        return _instead(name, original, stand_in)

    def stand_in(held: Any) -> Any:
        if _working.get() or is_exempt(held):
            return None
        return state_of(held, kind or type(held).__name__, partial(make, held), same(held))

    replace_in_classes(patches, base, (*names, *others), instead)


def _instead(name: str, original: Any, stand_in: Callable[[Any], Any]) -> Any:
    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        instead_of = stand_in(self)
        if instead_of is None:
            return original(self, *args, **kwargs)
        return getattr(instead_of, name)(partial(original, self), *args, **kwargs)

    @wraps(original)
    async def amethod(self: Any, *args: Any, **kwargs: Any) -> Any:
        instead_of = stand_in(self)
        if instead_of is None:
            return await original(self, *args, **kwargs)
        return await getattr(instead_of, name)(partial(original, self), *args, **kwargs)

    return amethod if inspect.iscoroutinefunction(original) else method


def replace_in_classes(patches: Patches, base: Any, names: Sequence[str], instead: Replace) -> None:
    """Replace attributes of a class and of its present and future subclasses, until an undo.

    A call is replaced once: a method that calls the one of the class it derives from, by `super()`,
    calls that as it was.
    """
    replaced: dict[str, set[type]] = {name: set() for name in names}

    def replace(owner: type) -> None:
        for name in names:
            if name not in vars(owner):
                continue
            original = vars(owner)[name]
            new = instead(owner, name, original)
            if new is not original and inspect.isfunction(original) and not name.startswith("__"):
                replaced[name].add(owner)
                new = _outermost(owner, replaced[name], original, new)
            patches.replace(owner, name, new)

    before = vars(base).get("__init_subclass__")

    def arrive(cls: Any, /, **options: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__func__(cls, **options)
        replace(cls)

    waiting, seen = [base], {base}
    while waiting:
        owner = waiting.pop()
        replace(owner)
        new = [kind for kind in type.__subclasses__(owner) if kind not in seen]
        seen.update(new)
        waiting.extend(new)
    patches.replace(base, "__init_subclass__", classmethod(arrive))


def _outermost(owner: type, replaced: set[type], original: Any, new: Any) -> Any:
    """Return a method that is replaced where it is called on an object, not by `super()`."""

    def chosen(held: Any) -> Any:
        first = next((kind for kind in type(held).__mro__ if kind in replaced), owner)
        return new if first is owner else original

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return chosen(self)(self, *args, **kwargs)

    @wraps(original)
    async def amethod(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await chosen(self)(self, *args, **kwargs)

    return amethod if inspect.iscoroutinefunction(new) else method


def upkeep(state: State, live: Any) -> Any:
    """Let an object create its tables or delete what has expired, but not in a replay or fork.

    Return what the caller of that method gets, to be awaited where the method is asynchronous.
    """
    if inspect.iscoroutinefunction(live.func):
        return _aupkeep(state, live)
    if state.is_answered:
        return None
    with undisturbed():
        return live()


async def _aupkeep(state: State, live: Any) -> Any:
    if state.is_answered:
        return None
    with undisturbed():
        return await live()
