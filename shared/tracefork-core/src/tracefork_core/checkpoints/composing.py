"""Put a value together from the rows it rests on, one above the other.

Each row is a delta of the one below. From the top, what is wanted of a row is either new in it, or
wanted of the row below: no row but the top one is ever put together.
"""

from __future__ import annotations

from bisect import bisect_right

from tracefork_core.errors import TapeError
from tracefork_core.tape import blobs
from tracefork_core.tape.delta import Piece
from tracefork_core.tape.frames import RATIO, unpack
from tracefork_core.tape.schema import LARGEST

HEAVIEST = 8
"""Times its size: what the rows of a value may come to in a file we did not write."""
ALLOWANCE = 1024 * 1024
MOST_PIECES = 8 * blobs.MOST_PIECES
"""Pieces of one row in a file we did not write."""
STEP = 16
"""What a step costs, in bytes of the value: to look at a piece, or for a part of one."""

_Wanted = list[tuple[int, int, int]]
"""Bytes of a row that are wanted: where they go, where they are, how many."""


class Composer:
    """Puts one value together. Rows are given from the top down, until none is wanted."""

    def __init__(self, size: int) -> None:
        if not 0 <= size <= LARGEST:
            raise TapeError("tracefork: a value is larger than a file of threads takes.")
        self._value = bytearray(size)
        self._wanted: _Wanted = [(0, 0, size)] if size else []
        self._left = HEAVIEST * size + ALLOWANCE
        self._steps = self._left // STEP

    @property
    def value(self) -> bytes:
        """The value, once all of it was given."""
        return bytes(self._value)

    def add(self, size: int, pieces: list[Piece], data: bytes) -> bool:
        """Take what is wanted of a row; return whether something of the next one is.

        It has `size` bytes, made of `pieces`, whose new bytes are `data`, maybe packed.

        Raises:
            TapeError: the row is no delta of anything, or unpacks to more than a writer packs.
        """
        self._steps -= len(pieces)
        places, sources, count = _laid_out(pieces, size)
        fresh = self._fresh(data, count)
        wanted: _Wanted = []
        for target, start, length in self._wanted:
            end = start + length
            if end > size:
                raise TapeError("tracefork: a value takes bytes from where there are none.")
            for i in range(bisect_right(places, start) - 1, len(pieces)):
                place = places[i]
                if place >= end:
                    break
                self._steps -= 1
                low, high = max(start, place), min(end, place + pieces[i][-1])
                if low >= high:
                    continue
                goes, lies = target + low - start, sources[i] + low - place
                if len(pieces[i]) == 2:
                    wanted.append((goes, lies, high - low))
                else:
                    self._value[goes : goes + high - low] = fresh[lies : lies + high - low]
            if self._steps < 0:
                raise TapeError("tracefork: a value is made of too many pieces.")
        self._wanted = wanted
        return bool(wanted)

    def end(self, base: bytes) -> None:
        """Take what is wanted of the lowest row, which is known."""
        self.add(len(base), [[len(base)]], base)

    def _fresh(self, data: bytes, count: int) -> bytes:
        self._left -= count
        if self._left < 0 or count > ALLOWANCE + RATIO * len(data):
            raise TapeError("tracefork: a value unpacks to more than any writer packs.")
        fresh = data if len(data) == count else unpack(data, allowance=count, ratio=0)
        if len(fresh) != count:
            raise TapeError("tracefork: a value does not have the bytes it declares.")
        return fresh


def _laid_out(pieces: list[Piece], size: int) -> tuple[list[int], list[int], int]:
    """Return where each piece begins, where its bytes lie, and how many are new in all."""
    places: list[int] = []
    sources: list[int] = []
    place = fresh = 0
    for piece in pieces:
        if len(piece) not in (1, 2) or piece[0] < 0 or piece[-1] < 0:
            raise TapeError("tracefork: a value is no delta of anything.")
        places.append(place)
        place += piece[-1]
        if len(piece) == 2:
            sources.append(piece[0])
        else:
            sources.append(fresh)
            fresh += piece[0]
    if place != size:
        raise TapeError("tracefork: a value does not have the size it declares.")
    return places, sources, fresh
