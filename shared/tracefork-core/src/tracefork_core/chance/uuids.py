"""Patch `uuid1`, `uuid6` and `uuid7`, and those of other packages in Python.

Their time comes from the clock and their bytes from entropy, which are recorded. What is left is
the state that the module keeps between calls so that no two ids are equal: each lane gets its own.
The network address of the host, which differs on another machine, is replaced by a random one, as
RFC 9562 allows.

pydantic-ai has a `uuid7` of its own for Python before 3.14, a copy of the one there. Packages in
Rust are in `native_uuids`.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core.chance.entropy import RecordedEntropy, sessions, urandom
from tracefork_core.exchange.lane import current_lane
from tracefork_core.patching.bound_names import Pair, Swaps
from tracefork_core.patching.instrument import Instrument, Undo

State = dict[str, object]
Names = dict[str, Any]

_MULTICAST = 1 << 40
"""The bit that marks a network address as random (RFC 9562, section 6.10)."""

_lock = threading.RLock()
_by_lane: WeakKeyDictionary[RecordedEntropy, dict[tuple[str, str], State]] = WeakKeyDictionary()


def _on_lane(
    module: Names, function: Callable[..., uuid.UUID], *, asks_host: bool
) -> Callable[..., uuid.UUID]:
    """Return a version of an id function that gives the same ids at replay."""

    @functools.wraps(function)
    def make(*args: int | None, **kwargs: int | None) -> uuid.UUID:
        entropy = sessions.here()
        if entropy is None:
            return function(*args, **kwargs)
        if asks_host:
            given = dict(zip(("node", "clock_seq"), args, strict=False)) | kwargs
            if given.get("node") is None:
                node = int.from_bytes(entropy.of_process("uuid.node", 6))
                given["node"] = node | _MULTICAST
            if given.get("clock_seq") is None:
                given["clock_seq"] = int.from_bytes(urandom(2)) & 0x3FFF
            args, kwargs = (), given
        return _with_state_of_lane(entropy, module, lambda: function(*args, **kwargs))

    return make


def _with_state_of_lane(
    entropy: RecordedEntropy, module: Names, make: Callable[[], uuid.UUID]
) -> uuid.UUID:
    """Call `make` with the state that the module had after this lane's last id."""
    own = module["__name__"], current_lane(entropy.session)
    with _lock:
        lanes = _by_lane.setdefault(entropy, {})
        around = _state(module)
        module.update(lanes.get(own) or dict.fromkeys(around))
        try:
            return make()
        finally:
            lanes[own] = _state(module)
            module.update(around)


def _state(module: Names) -> State:
    return {name: value for name, value in module.items() if name.startswith("_last_")}


def _pairs(module: Names, names: str, asking: str = "") -> list[Pair]:
    """Return the named functions and their stand-ins; those in `asking` use the host's address."""
    return [
        (module[name], _on_lane(module, module[name], asks_host=name in asking.split()))
        for name in names.split()
        if name in module
    ]


@functools.lru_cache(maxsize=4)
def _swaps_of(package: ModuleType) -> Swaps:
    return Swaps(_pairs(vars(package), "uuid6 uuid7 uuid8"))


def _instrument(package: ModuleType) -> Undo:
    swaps = _swaps_of(package)
    swaps.put_in()
    return swaps.take_out


SWAPS = _pairs(vars(uuid), "uuid1 uuid6 uuid7", asking="uuid1 uuid6")
PACKAGES = (
    Instrument("uuid6", _instrument),
    Instrument("pydantic_ai._uuid", _instrument),
)
