"""Put a stand-in in front of each object of CrewAI's whose state outlives the run.

Flow states, task outputs, memories, knowledge, checkpoints and trained agents lie in files of the
user's. While recording, a stand-in uses the object and notes on the tape what the run read and had
not written itself. In a replay or fork it never touches the object: it answers with what the
recording read and with what this run wrote, which it keeps in memory.

The stand-in steps in at the methods of the object's class, so it also stands for objects made
before the session, and for classes of the user's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, TypeVar

import msgspec

from tracefork_core.adapters import State, answering_tape, crossing_seam, state_of
from tracefork_crewai.replacing import replaced

Method = Callable[..., Any]
Make = Callable[[Any, State], Any]
T = TypeVar("T")

_working: ContextVar[bool] = ContextVar("tracefork_crewai_working", default=False)


def is_answered() -> bool:
    """Return whether this code runs in a replay or fork, in which no storage may be touched."""
    return answering_tape() is not None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let an object work: no stand-in steps in, and nothing that it draws or asks is recorded."""
    token = _working.set(True)
    try:
        with crossing_seam():
            yield
    finally:
        _working.reset(token)


def in_front(
    base: type, names: tuple[str, ...], kind: str, make: Make, same: Callable[[Any], Hashable]
) -> Callable[[], None]:
    """Put stand-ins in front of the objects of a class and its subclasses; return the undoing.

    A stand-in has the methods `names`. Each gets the object's own bound method first, then the
    arguments.

    Args:
        base: the class.
        names: the methods that are replaced, where a class defines them.
        kind: what the tape calls the objects.
        make: makes the stand-in, from an object and its `State`.
        same: returns what objects have in common that hold the same data; None if nothing.
    """
    stack = ExitStack()

    def replace(owner: type) -> None:
        for name in names:
            if name in vars(owner):
                instead = partial(_instead, kind=kind, make=make, same=same)
                stack.callback(replaced(owner, name, instead))

    def arriving(init: Any) -> Any:
        @classmethod  # type: ignore[misc]
        @wraps(init.__func__)
        def arrive(cls: type, **options: Any) -> None:
            init.__func__(cls, **options)
            replace(cls)

        return arrive

    with stack:
        for owner in _family(base):
            replace(owner)
        if "__init_subclass__" in vars(base):
            stack.callback(replaced(base, "__init_subclass__", arriving))
        return stack.pop_all().close


def _family(base: type) -> Iterator[type]:
    seen: set[type] = {base}
    waiting = [base]
    while waiting:
        owner = waiting.pop()
        yield owner
        subclasses: list[type] = owner.__subclasses__()
        new = [sub for sub in subclasses if sub not in seen]
        seen.update(new)
        waiting.extend(new)


def _instead(method: Method, *, kind: str, make: Make, same: Callable[[Any], Hashable]) -> Method:
    def stand_in(owner: object) -> Any:
        return None if _working.get() else state_of(owner, kind, partial(make, owner), same(owner))

    @wraps(method)
    def instead(self: Any, *args: Any, **kwargs: Any) -> Any:
        instead_of = stand_in(self)
        if instead_of is None:
            return method(self, *args, **kwargs)
        return getattr(instead_of, method.__name__)(partial(method, self), *args, **kwargs)

    @wraps(method)
    async def ainstead(self: Any, *args: Any, **kwargs: Any) -> Any:
        instead_of = stand_in(self)
        if instead_of is None:
            return await method(self, *args, **kwargs)
        return await getattr(instead_of, method.__name__)(partial(method, self), *args, **kwargs)

    return ainstead if inspect.iscoroutinefunction(method) else instead


class Reads:
    """What a run reads of one object, and had not written itself, on the tape.

    An answer that equals `nothing`, or the answer before it to the same question, is not noted.
    """

    def __init__(self, state: State, nothing: object = None) -> None:
        self._state = state
        self._nothing = nothing
        self._last: dict[str, bytes] = {}

    def read(self, key: str, own: Callable[[], T]) -> T:
        """Return what `own` finds, or what it found in the recording."""
        n = self._state.number(key)
        if self._state.is_answered:
            return self._recorded(key, n)  # type: ignore[no-any-return]
        with undisturbed():
            found = own()
        self._note(key, n, found)
        return found

    async def aread(self, key: str, own: Method) -> Any:
        """Do the same, and await `own`."""
        n = self._state.number(key)
        if self._state.is_answered:
            return self._recorded(key, n)
        with undisturbed():
            found = await own()
        self._note(key, n, found)
        return found

    def _recorded(self, key: str, n: int) -> Any:
        noted = self._state.recorded(key, n)
        data = noted[-1].values[0][1] if noted else packed(self._nothing)
        found = msgspec.msgpack.decode(data)
        self._note(key, n, found)  # A fork is a recording, too.
        return found

    def _note(self, key: str, n: int, found: object) -> None:
        data = packed(found)
        if data != self._last.get(key, packed(self._nothing)):
            self._last[key] = data
            self._state.note(key, n, None, [("msgpack", data)])


def packed(value: object) -> bytes:
    """Return a value as MessagePack: data as it is, all else as its text."""
    return msgspec.msgpack.encode(value, enc_hook=str)
