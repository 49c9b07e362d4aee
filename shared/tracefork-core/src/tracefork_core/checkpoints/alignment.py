"""What a value shares with an earlier one, whatever format both are in.

A list that has grown begins with another length and goes on as before; a text in the middle of it
has changed. So both are read side by side, and where they part, samples of the one are looked for
in the other: that is a search in C, however long both are.
"""

from __future__ import annotations

from tracefork_core.tape.delta import Piece, common_end, common_start, simplified

_SAMPLE = 32
_GAPS = (1, 3, 9, 33, 129, 513, 2049, 8193)
"""How far behind the place where both part the samples are taken."""
_MOST_MISSES = 64


def aligned(data: bytes, base: bytes) -> list[Piece]:
    """Return `data` as a delta against `base`, its copies in the order of `base`."""
    tail = common_end(data, base, min(len(data), len(base)))
    end, base_end = len(data) - tail, len(base) - tail
    pieces: list[Piece] = []
    place = base_place = misses = 0
    while place < end:
        same = common_start(data[place:end], base[base_place:base_end])
        if same:
            pieces.append([base_place, same])
            place, base_place = place + same, base_place + same
        found = _goes_on(data, place, end, base, base_place, base_end)
        if found is None:
            misses += 1
            fresh = min(_GAPS[-1], end - place) if misses < _MOST_MISSES else end - place
            pieces.append([fresh])
            place += fresh
        else:
            pieces.append([found[0] - place])
            place, base_place = found
    pieces.append([base_end, tail])
    return simplified(pieces)


def _goes_on(
    data: bytes, place: int, end: int, base: bytes, base_place: int, base_end: int
) -> tuple[int, int] | None:
    """Return where both are alike again, in `data` and in `base`."""
    for gap in _GAPS:
        start = place + gap
        if start + _SAMPLE > end:
            return None
        found = base.find(data[start : start + _SAMPLE], base_place, base_end)
        if found >= 0:
            back = min(start - place, found - base_place)
            same = common_end(data[start - back : start], base[found - back : found], back)
            return start - same, found - same
    return None
