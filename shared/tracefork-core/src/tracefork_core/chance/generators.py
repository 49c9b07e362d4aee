"""The global generator of `random`, one for each lane.

The first lane that draws goes on from the state the global generator has: a program that seeded it
before gets what it would get without us. Other lanes get generators that are seeded from that state
and their name. A program that seeds the generator itself has taken charge: from there on it is one
generator for everybody, as Python has it.
"""

from __future__ import annotations

import hashlib
import random
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tracefork_core.errors import TapeError
from tracefork_core.exchange.lane import drawing_lane
from tracefork_core.tape.event import Draws, GeneratorState

NAME = "random"
VERSION = random.Random.VERSION
SEED_BYTES = 32
_WORDS = struct.Struct("<625I")
_GAUSS = struct.Struct("<d")
_LAST_POSITION = 624

Twister = tuple[tuple[int, ...], float | None]
"""624 words and the position among them, and the half of a pair of `gauss` that was kept."""


class LaneGenerators:
    """The generators of one session.

    Args:
        session: whose lanes they belong to.
        fallback: makes the one to begin with where a tape has none.
        recorded: what the tape knows of chance; None while recording.
        alone: whether no other session goes on from the same global generator.
    """

    def __init__(
        self,
        session: object,
        fallback: Callable[[], random.Random],
        recorded: Draws | None,
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._session = session
        self._fallback = fallback
        self._alone = alone
        self._replaying = recorded is not None
        self._goes_on = False
        self._given = recorded_state(recorded, NAME)
        self._begun: GeneratorState | None = None
        self._written = False
        self._one: random.Random | None = None
        self._for_all = False
        self._by_lane: dict[str, random.Random] = {}
        self._lock = threading.RLock()

    def here(self) -> random.Random:
        """Return the generator of this lane."""
        if self._for_all and self._one is not None:
            return self._one
        lane = drawing_lane(self._session)
        return self._by_lane.get(lane) or self._begin(lane)

    def taken_over(self) -> random.Random:
        """Return the one generator of all lanes, for the program that seeds it itself."""
        with self._lock:
            if self._one is None:
                self._one = seeded(b"")
                self._goes_on = not self._replaying and self._alone()
            self._for_all = True
            return self._one

    def fresh(self) -> list[GeneratorState]:
        """Return the state they began with, once it is known and not on the tape yet."""
        if self._begun is None or self._written:
            return []
        with self._lock:
            self._written = True
            return [self._begun]

    @property
    def state(self) -> tuple[Any, ...] | None:
        """The state in which the global generator goes on after the run, if it does."""
        return self._one.getstate() if self._one is not None and self._goes_on else None

    def _begin(self, lane: str) -> random.Random:
        with self._lock:
            begun = self._begun
            if begun is None:
                begun = self._begun = self._given or GeneratorState(NAME, self._start(), lane)
                self._one = seeded(b"")
                self._one.setstate((VERSION, *unpacked(begun.state)))
            if lane == begun.lane and self._one is not None:
                own = self._one
            else:
                seed = hashlib.sha256(lane.encode("utf-8", "surrogatepass") + b"\0" + begun.state)
                own = seeded(seed.digest())
            self._by_lane[lane] = own
            return own

    def _start(self) -> bytes:
        self._goes_on = not self._replaying and self._alone()
        return packed_state(global_state() if self._goes_on else self._fallback().getstate())


def packed_state(state: tuple[Any, ...]) -> bytes:
    """Return what `getstate` gave as a tape holds it."""
    _, words, gauss = state
    return packed(words, gauss)


def global_state() -> tuple[Any, ...]:
    """Return the state of the global generator, whatever stands in for it now."""
    inst = random._inst  # noqa: SLF001
    words = super(random.Random, inst).getstate()
    return VERSION, words, vars(inst).get("gauss_next")


def seeded(seed: bytes) -> random.Random:
    """Return a generator that gives the same values for the same seed."""
    return random.Random(int.from_bytes(seed))  # noqa: S311 - it stands in for just such a one


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
