"""The state of a Mersenne Twister as a tape holds it: that of `random`, and that of numpy."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tracefork_core.errors import TapeError
from tracefork_core.tape.event import Draws, GeneratorState

_WORDS = struct.Struct("<625I")
_GAUSS = struct.Struct("<d")
_LAST_POSITION = 624

Twister = tuple[tuple[int, ...], float | None]
"""624 words and the position among them, and the half of a pair of `gauss` that was kept."""


def packed(words: Iterable[int], gauss: float | None) -> bytes:
    """Return a state in 2,500 bytes, or 2,508."""
    return _WORDS.pack(*words) + (b"" if gauss is None else _GAUSS.pack(gauss))


def unpacked(state: bytes) -> Twister:
    """Return what was packed."""
    words, gauss = state[: _WORDS.size], state[_WORDS.size :]
    return _WORDS.unpack(words), _GAUSS.unpack(gauss)[0] if gauss else None


def recorded_state(recorded: Draws | None, name: str) -> GeneratorState | None:
    """Return the state a tape has for a generator, if it has one.

    Raises:
        TapeError: it is none that a generator can be in.
    """
    states = recorded.generators if recorded else []
    for state in states:
        if state.name == name:
            _check(state)
            return state
    return None


def _check(state: GeneratorState) -> None:
    try:
        words, _ = unpacked(state.state)
    except struct.error as error:
        raise _damaged(state) from error
    if words[-1] > _LAST_POSITION:  # In C, numpy would read on past the end.
        raise _damaged(state)


def _damaged(state: GeneratorState) -> TapeError:
    return TapeError(
        f"tracefork: the state of the generator {state.name!r} on this tape is damaged "
        f"({len(state.state)} bytes). Record the run anew, or replay it with entropy=False."
    )
