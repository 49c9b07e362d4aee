"""`uuid1`, `uuid6` and `uuid7` while sessions are open.

Their time comes from the clock and their bytes from entropy. What is left is what the module keeps
between calls, so that no two are the same: a lane keeps its own. The host's address, which a replay
elsewhere would not have, is replaced by a random one, as RFC 9562 allows.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from weakref import WeakKeyDictionary

from tracefork_core.determinism.entropy import RecordedEntropy, sessions
from tracefork_core.determinism.os_entropy import urandom
from tracefork_core.exchange.lane import current_lane

Kept = dict[str, object]

_module = vars(uuid)
_KEPT = tuple(name for name in _module if name.startswith("_last_"))
_MULTICAST = 1 << 40
"""The bit that says an address is no host's."""

_lock = threading.RLock()
_by_lane: WeakKeyDictionary[RecordedEntropy, dict[str, Kept]] = WeakKeyDictionary()


def _on_lane(function: Callable[..., uuid.UUID], *, asks_host: bool) -> Callable[..., uuid.UUID]:
    """Return a function that makes ids as `function` does, alike in every run."""

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
        return _with_own(entropy, lambda: function(*args, **kwargs))

    return make


def _with_own(entropy: RecordedEntropy, make: Callable[[], uuid.UUID]) -> uuid.UUID:
    """Call `make` with what the module kept when this lane made its last one."""
    lane = current_lane(entropy.session)
    with _lock:
        lanes = _by_lane.setdefault(entropy, {})
        around = {name: _module[name] for name in _KEPT}
        _module.update(lanes.get(lane) or dict.fromkeys(_KEPT))
        try:
            return make()
        finally:
            lanes[lane] = {name: _module[name] for name in _KEPT}
            _module.update(around)


SWAPS: list[tuple[object, object]] = [
    (_module[name], _on_lane(_module[name], asks_host=name != "uuid7"))
    for name in ("uuid1", "uuid6", "uuid7")
    if name in _module
]
