"""The global generator of `random`, one for each lane, and its state on a tape.

The first lane that draws continues from the state of the real global generator: a program that
seeded it before gets the values that it would get without tracefork. The real generator is moved
to another state meanwhile, so that other work of the process does not draw the same values. After
the run it continues where the run left it, unless other work has drawn from it. Other lanes get
generators that are seeded from the first state and the lane's name. If the program seeds the
generator itself, all lanes share one generator from there on, as in plain Python.

Generators of numpy use the same algorithm (Mersenne Twister), and their states are stored alike.
"""

from __future__ import annotations

import hashlib
import random
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tracefork_core.errors import TapeError
from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.lane import drawing_lane
from tracefork_core.tape.event import Draws, GeneratorState

NAME = "random"
VERSION = random.Random.VERSION
SEED_BYTES = 32
_WORDS = struct.Struct("<625I")
_GAUSS = struct.Struct("<d")
_LAST_POSITION = 624

Twister = tuple[tuple[int, ...], float | None]
"""624 words and the position among them, and the second value of a pair of `gauss`, if kept."""


class LaneGenerators:
    """The generators of one session.

    Args:
        session: the session whose lanes they serve.
        fallback: makes the first generator if the tape has no state.
        recorded: the draws on the tape; None while recording.
        alone: whether this is the only session that continues from the real generator.
    """

    def __init__(
        self,
        session: Session,
        fallback: Callable[[], random.Random],
        recorded: Draws | None,
        alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._session = session
        self._fallback = fallback
        self._alone = alone
        self._replaying = recorded is not None
        self._goes_on = False
        self._meanwhile: tuple[Any, ...] | None = None
        self._given = recorded_state(recorded, NAME)
        self._begun: GeneratorState | None = None
        self._written = False
        self._one: random.Random | None = None
        self._for_all = False
        self._by_lane: dict[str, random.Random] = {}
        self._lock = threading.RLock()

    def release(self) -> None:
        """Let go of the entropy of the session, which has ended."""
        self._fallback = random.Random

    def here(self) -> random.Random:
        """Return the generator of this lane."""
        if self._for_all and self._one is not None:
            return self._one
        lane = drawing_lane(self._session)
        return self._by_lane.get(lane) or self._begin(lane)

    def taken_over(self) -> random.Random:
        """Return the generator that all lanes share, once the program seeds it itself."""
        with self._lock:
            if self._one is None:
                self._one = seeded(b"")
                self._goes_on = not self._replaying and self._alone()
                self._meanwhile = global_state() if self._goes_on else None
            self._for_all = True
            return self._one

    def fresh(self) -> list[GeneratorState]:
        """Return the state they began with, unless it is unknown or on the tape already."""
        if self._begun is None or self._written:
            return []
        with self._lock:
            self._written = True
            return [self._begun]

    @property
    def state(self) -> tuple[Any, ...] | None:
        """The state that the real generator gets after the run; None if it keeps its own."""
        if self._one is None or not self._goes_on or global_state() != self._meanwhile:
            return None
        return self._one.getstate()

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
        if not self._goes_on:
            return packed_state(self._fallback().getstate())
        start = packed_state(global_state())
        set_global_state(seeded(hashlib.sha256(start).digest()).getstate())
        self._meanwhile = global_state()
        return start


def packed_state(state: tuple[Any, ...]) -> bytes:
    """Return a state of `random.getstate` as a tape stores it."""
    _, words, gauss = state
    return packed(words, gauss)


def global_state() -> tuple[Any, ...]:
    """Return the state of the real global generator, also while its class is replaced."""
    inst = random._inst  # noqa: SLF001
    words = super(random.Random, inst).getstate()
    return VERSION, words, vars(inst).get("gauss_next")


def set_global_state(state: tuple[Any, ...]) -> None:
    """Undo `global_state`."""
    inst = random._inst  # noqa: SLF001
    _, words, gauss = state
    super(random.Random, inst).setstate(words)
    vars(inst)["gauss_next"] = gauss


def seeded(seed: bytes) -> random.Random:
    """Return a generator with a fixed seed."""
    return random.Random(int.from_bytes(seed))  # noqa: S311 - it replaces one of these


def packed(words: Iterable[int], gauss: float | None) -> bytes:
    """Return a state as 2,500 bytes, or 2,508 with a value of `gauss`."""
    return _WORDS.pack(*words) + (b"" if gauss is None else _GAUSS.pack(gauss))


def unpacked(state: bytes) -> Twister:
    """Undo `packed`."""
    words, gauss = state[: _WORDS.size], state[_WORDS.size :]
    return _WORDS.unpack(words), _GAUSS.unpack(gauss)[0] if gauss else None


def recorded_state(recorded: Draws | None, name: str) -> GeneratorState | None:
    """Return the state that a tape holds for a generator; None if it holds none.

    Raises:
        TapeError: the state is corrupt.
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
        raise _corrupt(state) from error
    if words[-1] > _LAST_POSITION:  # numpy, in C, would read past the end.
        raise _corrupt(state)


def _corrupt(state: GeneratorState) -> TapeError:
    return TapeError(
        f"tracefork: the state of the random generator {state.name!r} on this tape is corrupt "
        f"({len(state.state)} bytes). Record the run again, or replay it with entropy=False."
    )
