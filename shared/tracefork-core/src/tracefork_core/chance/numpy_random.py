"""The global generator of numpy, which is C and one for the whole process.

It goes on from the state it has; that state is put on the tape once somebody drew from it. Loaded
inside a session, it begins with a seed from that session's entropy. `default_rng()` without a seed
draws from `secrets`, and needs nothing here.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

from tracefork_core.chance.entropy import RecordedEntropy, real_urandom
from tracefork_core.chance.generators import packed, recorded_state, unpacked
from tracefork_core.patching.on_import import Arrival
from tracefork_core.tape.event import GeneratorState

NAME = "numpy"
HOME = "numpy.random.mtrand"
_KIND = "MT19937"
_SEED_WORDS = struct.Struct("<8I")


class NumpyGenerator:
    """The global generator of numpy under one session."""

    def __init__(self, entropy: RecordedEntropy) -> None:
        self._entropy = entropy
        self._given = recorded_state(entropy.recorded, NAME)
        self._around: bytes | None = None
        self._written = entropy.recorded is not None and not entropy.forked
        self._arrival: Arrival | None = None

    def on(self) -> None:
        """Put the generator into its recorded state, or remember the one it has."""
        self._around = _state()
        if _home() is None:
            self._arrival = Arrival(HOME, self._settle)
            self._arrival.on()
        elif self._entropy.recorded is not None:
            self._settle()

    def off(self) -> None:
        """After a replay, leave it as it was found: a program goes on with chance of its own."""
        if self._arrival is not None:
            self._arrival.off()
        if self._entropy.recorded is None or (home := _home()) is None:
            return
        if self._around is not None:
            _set(home, self._around)
        else:
            home.seed(_SEED_WORDS.unpack(real_urandom(_SEED_WORDS.size)))

    def fresh(self) -> list[GeneratorState]:
        """Return the state it began with, once it has moved on from there."""
        if not self._written and self._entropy.forked:
            self._written = True
            return [self._given] if self._given is not None else []
        if self._written or self._around is None or _state() == self._around:
            return []
        self._written = True
        return [GeneratorState(NAME, self._around)]

    def _settle(self) -> None:
        home = _home()
        if home is None:
            return
        if self._given is not None:
            _set(home, self._given.state)
        else:
            home.seed(_SEED_WORDS.unpack(self._entropy.of_process("numpy", _SEED_WORDS.size)))


def _home() -> Any:
    return sys.modules.get(HOME)


def _state() -> bytes | None:
    """Return the state; None where numpy is not loaded or has another generator."""
    home = _home()
    state = home.get_state(legacy=False) if home is not None else None
    if state is None or state["bit_generator"] != _KIND:
        return None
    inner = state["state"]
    gauss = state["gauss"] if state["has_gauss"] else None
    return packed([*inner["key"], inner["pos"]], gauss)


def _set(home: Any, state: bytes) -> None:
    (*key, position), gauss = unpacked(state)
    home.set_state((_KIND, key, position, int(gauss is not None), gauss or 0.0))
