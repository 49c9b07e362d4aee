"""Record and restore the global generator of numpy, which lives in C, one for the process.

A recording leaves the generator in the state that it has, and writes that state to the tape once it
has moved on. If numpy is imported inside a session, it gets a seed from that session's entropy.
`default_rng()` without a seed draws from `secrets`, which `process_entropy` covers.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

from tracefork_core.chance.entropy import RecordedEntropy, real_urandom
from tracefork_core.chance.generators import packed, recorded_state, unpacked
from tracefork_core.patching.on_import import OnImport
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
        self._on_import: OnImport | None = None

    def on(self) -> None:
        """Set the generator to its recorded state, or remember the one it has."""
        self._around = _state()
        if _mtrand() is None:
            self._on_import = OnImport(HOME, self._settle)
            self._on_import.on()
        elif self._entropy.recorded is not None:
            self._settle()

    def off(self) -> None:
        """After a replay, restore the state from before, or a random one."""
        if self._on_import is not None:
            self._on_import.off()
            self._on_import = None
        if self._entropy.recorded is None or (mtrand := _mtrand()) is None:
            return
        if self._around is not None:
            _set(mtrand, self._around)
        else:
            mtrand.seed(_SEED_WORDS.unpack(real_urandom(_SEED_WORDS.size)))

    def fresh(self) -> list[GeneratorState]:
        """Return the state it began with, once, after the generator has moved on."""
        if not self._written and self._entropy.forked:
            self._written = True
            return [self._given] if self._given is not None else []
        if self._written or self._around is None or _state() == self._around:
            return []
        self._written = True
        return [GeneratorState(NAME, self._around)]

    def _settle(self) -> None:
        mtrand = _mtrand()
        if mtrand is None:
            return
        if self._given is not None:
            _set(mtrand, self._given.state)
        else:
            mtrand.seed(_SEED_WORDS.unpack(self._entropy.of_process("numpy", _SEED_WORDS.size)))


def _mtrand() -> Any:
    return sys.modules.get(HOME)


def _state() -> bytes | None:
    """Return the state; None if numpy is not loaded or uses another algorithm."""
    mtrand = _mtrand()
    state = mtrand.get_state(legacy=False) if mtrand is not None else None
    if state is None or state["bit_generator"] != _KIND:
        return None
    inner = state["state"]
    gauss = state["gauss"] if state["has_gauss"] else None
    return packed([*inner["key"], inner["pos"]], gauss)


def _set(mtrand: Any, state: bytes) -> None:
    (*key, position), gauss = unpacked(state)
    mtrand.set_state((_KIND, key, position, int(gauss is not None), gauss or 0.0))
