"""Patch the functions of `random`, and generators made without a seed.

`random.choice` and most of its siblings are bound methods of one hidden object. To change the class
of that object reaches them under every name. That does not work for `random` and `getrandbits`,
which are bound in C, nor for `seed`, `getstate` and `setstate`, which are bound to the old class:
these are replaced under every name (see `patching.bound_names`).
"""

from __future__ import annotations

import random
import sys
from types import MethodType
from typing import Any, TypeVar

from tracefork_core.chance.draws import observers, report_draw
from tracefork_core.chance.entropy import THROUGH, sessions
from tracefork_core.chance.generators import SEED_BYTES
from tracefork_core.exchange.call_sites import call_site, drawer
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.patching.on_import import OnImport
from tracefork_core.patching.patch import Patches

SOURCE = "random"

T = TypeVar("T")

_Plain = random.Random
_inst = random._inst  # noqa: SLF001
_real_seed = _Plain.seed


class StandIn(_Plain):
    """The class of the global generator while sessions are open: it asks that of the lane."""

    def random(self) -> float:
        entropy = sessions.here()
        if entropy is None:
            return _Plain.random(self)
        return _seen(entropy.generators.here().random())

    def getrandbits(self, k: int, /) -> int:
        entropy = sessions.here()
        if entropy is None:
            return _Plain.getrandbits(self, k)
        return _seen(entropy.generators.here().getrandbits(k))

    def seed(self, a: Any = None, version: int = 2) -> None:
        entropy = sessions.here()
        if entropy is None:
            _real_seed(self, a, version)
        elif a is None:
            entropy.generators.here().seed(_fresh_seed())
        else:
            entropy.generators.taken_over().seed(a, version)

    def getstate(self) -> tuple[Any, ...]:
        entropy = sessions.here()
        return _Plain.getstate(self if entropy is None else entropy.generators.here())

    def setstate(self, state: tuple[Any, ...]) -> None:
        entropy = sessions.here()
        _Plain.setstate(self if entropy is None else entropy.generators.taken_over(), state)

    @property
    def gauss_next(self) -> float | None:
        """The second value of a pair that `gauss` made, of the lane's generator."""
        entropy = sessions.here()
        half: float | None
        half = vars(self if entropy is None else entropy.generators.here())["gauss_next"]
        return half

    @gauss_next.setter
    def gauss_next(self, value: float | None) -> None:
        entropy = sessions.here()
        vars(self if entropy is None else entropy.generators.here())["gauss_next"] = value


SWAPS = [
    (getattr(random, name), MethodType(getattr(StandIn, name), _inst))
    for name in ("random", "getrandbits", "seed", "getstate", "setstate")
]


_OF_OUR_OUTPUT = "rich.style"
"""Draws while it is loaded. The command line imports it too, earlier in a replay than in a
recording, so its draw must not shift those of the agent."""


def put_in(patches: Patches) -> None:
    """Let sessions answer the draws of this process."""
    patches.change_class(_inst, StandIn)
    patches.replace(_Plain, "seed", _seed)
    if _OF_OUR_OUTPUT not in sys.modules:
        loading = OnImport(_OF_OUR_OUTPUT, lambda: None, crossing_seam)
        patches.switch(loading.on, loading.off)


def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    """Seed any generator; if no seed is given, from the entropy of the session."""
    _real_seed(self, _fresh_seed() if a is None else a, version)


def _fresh_seed() -> int | None:
    entropy = sessions.here()
    if entropy is None:
        return None
    where, _ = call_site(2, THROUGH)
    if where is None:
        return None
    return int.from_bytes(entropy.draw(where, SEED_BYTES))


def _seen(value: T) -> T:
    if observers:
        report_draw(SOURCE, value, drawer(2, THROUGH))
    return value
