"""Make the ids of libraries in Rust from the clock and the entropy of the session.

LangChain and LangSmith take the ids of messages and runs from `uuid_utils`; LiteLLM takes those of
tool calls from `fastuuid`. Agents send such ids to models, and a replay has to draw them again.
Their native functions cannot be watched from inside, so each has a stand-in here that makes an id
of the same version. Without a session it calls the native function.

`uuid_utils.compat` calls the functions of `uuid_utils`, so it needs no stand-ins of its own.
"""

from __future__ import annotations

import functools
import threading
import time
import uuid
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core.chance.entropy import RecordedEntropy, sessions, urandom
from tracefork_core.exchange.lane import current_lane
from tracefork_core.patching.bound_names import Pair, Swaps
from tracefork_core.patching.instrument import Instrument, Undo

_VARIANT = 2 << 62
_NS_PER_MS = 1_000_000

_lock = threading.RLock()
_last: WeakKeyDictionary[RecordedEntropy, dict[str, tuple[int, int]]] = WeakKeyDictionary()
"""For each lane, the milliseconds of its last id of version 7, and the counter in it."""


def _uuid4() -> int:
    return uuid.UUID(bytes=urandom(16), version=4).int


def _uuid1(node: int | None = None, clock_seq: int | None = None) -> int:
    return uuid.uuid1(node, clock_seq).int


def _uuid6(native: int, node: int | None, clock_seq: int | None, *, is_timed: bool) -> int:
    """Return an id of version 6; where the caller gave a time, `native` has it."""
    made = uuid.uuid1(node, clock_seq)
    low = made.int & (1 << 64) - 1
    if is_timed:
        return native >> 64 << 64 | low
    return made.time >> 12 << 80 | 6 << 76 | (made.time & 0xFFF) << 64 | low


def _uuid7(native: int, *, is_timed: bool) -> int:
    """Return an id of version 7; where the caller gave a time, `native` has it.

    Ids of one lane increase: those of one millisecond count up from a random number.
    """
    now, drawn = time.time_ns() // _NS_PER_MS, urandom(10)
    counter, tail = int.from_bytes(drawn[:6]) & (1 << 41) - 1, int.from_bytes(drawn[6:])
    if is_timed:
        now = native >> 80
    elif (entropy := sessions.here()) is not None:
        lane = current_lane(entropy.session)
        with _lock:
            lanes = _last.setdefault(entropy, {})
            before, count = lanes.get(lane, (-1, 0))
            if now <= before:
                now, counter = before, count + 1
            lanes[lane] = now, counter
    high, low = counter >> 30, counter & (1 << 30) - 1
    return now << 80 | 7 << 76 | high << 64 | _VARIANT | low << 32 | tail


def _is_timed(args: tuple[Any, ...], kwargs: dict[str, Any], first: int = 0) -> bool:
    """Return whether a time was given, from argument `first` on or by a name."""
    names = ("timestamp", "nanos", "nanoseconds")
    return any(one is not None for one in (*args[first:], *map(kwargs.get, names)))


def _makers(package: ModuleType) -> dict[str, Callable[..., int]]:
    """Return what makes the ids of uuid_utils, as integers, by the names of its functions."""

    def uuid6(*args: Any, **kwargs: Any) -> int:
        native = natives["uuid6"](*args, **kwargs).int
        given = dict(zip(("node", "clock_seq"), args, strict=False)) | kwargs
        # In older versions its second argument is a time.
        has_clock_seq = "clock_seq" in (natives["uuid6"].__text_signature__ or "")
        clock_seq = given.get("clock_seq") if has_clock_seq else None
        is_timed = not has_clock_seq and _is_timed(args, kwargs, first=1)
        return _uuid6(native, given.get("node"), clock_seq, is_timed=is_timed)

    def uuid7(*args: Any, **kwargs: Any) -> int:
        is_timed = _is_timed(args, kwargs)
        native = natives["uuid7"](*args, **kwargs).int if is_timed else 0
        return _uuid7(native, is_timed=is_timed)

    makers = {"uuid1": _uuid1, "uuid4": _uuid4, "uuid6": uuid6, "uuid7": uuid7}
    natives: dict[str, Any] = {name: getattr(package, name, None) for name in makers}
    return makers


def _stand_in(
    native: Callable[..., Any], make: Callable[..., int], wrap: Callable[[int], Any]
) -> Pair:
    @functools.wraps(native)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if sessions.here() is None:
            return native(*args, **kwargs)
        return wrap(make(*args, **kwargs))

    return native, stand_in


def _is_native(package: ModuleType, name: str) -> bool:
    """Return whether a package has this function: yours may have the same name."""
    return isinstance(getattr(package, name, None), BuiltinFunctionType)


def _pairs_of_uuid_utils(package: ModuleType) -> list[Pair]:
    makers = _makers(package)
    pairs = [
        _stand_in(getattr(package, name), make, lambda number: package.UUID(int=number))
        for name, make in makers.items()
        if _is_native(package, name)
    ]
    # `compat` takes these, as integers, in versions that have them.
    for name, number in {"_uuid4_int": "uuid4", "_uuid7_int": "uuid7"}.items():
        if _is_native(package, name):
            pairs.append(_stand_in(getattr(package, name), makers[number], lambda number: number))
    return pairs


def _pairs_of_fastuuid(package: ModuleType) -> list[Pair]:
    makers = {"uuid4": _uuid4, "uuid7": lambda: _uuid7(0, is_timed=False)}
    return [
        _stand_in(getattr(package, name), make, lambda number: package.UUID(int=number))
        for name, make in makers.items()
        if _is_native(package, name)
    ]


def _instrument(pairs: Callable[[ModuleType], list[Pair]]) -> Callable[[ModuleType], Undo]:
    @functools.lru_cache(maxsize=2)
    def swaps_of(package: ModuleType) -> Swaps:
        return Swaps(pairs(package))

    def apply(package: ModuleType) -> Undo:
        swaps = swaps_of(package)
        swaps.put_in()
        return swaps.take_out

    return apply


PACKAGES = (
    Instrument("uuid_utils", _instrument(_pairs_of_uuid_utils)),
    Instrument("fastuuid", _instrument(_pairs_of_fastuuid)),
)
