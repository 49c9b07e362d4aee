"""Deltas: a body as pieces of an earlier one and what is new in it.

A delta is a list of pieces in order: `[n]` is n new bytes, `[offset, n]` is n bytes of the base
from `offset` on. An agent sends its transcript again at every step: nearly all of a request is the
request before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Piece = list[int]

_SAMPLES = 8
_SHORTEST = 48
"""A copied piece costs about as much as that many packed bytes."""
_BLOCK = 64 * 1024
"""Larger slices do not stay in the processor's cache."""
# Where JSON and text are likely to go on as before: an object, or a line (escaped in a string).
_SEAM = re.compile(rb'\{"|\\n|\n')


def difference(data: bytes, base: bytes) -> list[Piece]:
    """Return `data` as a delta against `base`."""
    head = common_start(data, base)
    tail = common_end(data, base, min(len(data), len(base)) - head)
    pieces: list[Piece] = [[0, head]]
    pieces.extend(_between(data[head : len(data) - tail], base[head : len(base) - tail], head))
    pieces.append([len(base) - tail, tail])
    return simplified(pieces)


def copied(pieces: Iterable[Piece]) -> int:
    """Return how many bytes of a delta are the base's."""
    return sum(piece[1] for piece in pieces if len(piece) == 2)


def fresh(data: bytes, pieces: Iterable[Piece]) -> bytes:
    """Return the new bytes of `data` under a delta."""
    place, parts = 0, []
    for piece in pieces:
        if len(piece) == 1:
            parts.append(data[place : place + piece[0]])
        place += piece[-1]
    return b"".join(parts)


def _between(data: bytes, base: bytes, shift: int) -> Iterator[Piece]:
    """Yield the pieces of what lies between a common start and a common end."""
    if not _are_alike(data, base):
        yield [len(data)]
        return
    places: dict[bytes, int] = {}
    place = 0
    for part in _parts(base):
        places.setdefault(part, place)
        place += len(part)
    for part in _parts(data):
        found = places.get(part)
        yield [len(part)] if found is None else [shift + found, len(part)]


def _are_alike(data: bytes, base: bytes) -> bool:
    """Return whether a few samples of one are found in the other: looking closer is dear."""
    if len(data) < _SAMPLES * _SHORTEST:
        return False
    places = range(0, len(data) - _SHORTEST, len(data) // _SAMPLES)
    return any(data[place : place + _SHORTEST] in base for place in places)


def _parts(data: bytes) -> Iterator[bytes]:
    start = 0
    for seam in _SEAM.finditer(data):
        if seam.start() - start >= _SHORTEST:
            yield data[start : seam.start()]
            start = seam.start()
    yield data[start:]


def simplified(pieces: Iterable[Piece], shortest: int = _SHORTEST) -> list[Piece]:
    """Join neighbours, and take copies shorter than that for new bytes."""
    simple: list[Piece] = []
    for piece in pieces:
        last = simple[-1] if simple else []
        if len(piece) == 2 and len(last) == 2 and last[0] + last[1] == piece[0]:
            last[1] += piece[1]
            continue
        if len(last) == 2 and last[1] < shortest:
            simple.pop()
            _add_fresh(simple, last[1])
        if len(piece) == 1:
            _add_fresh(simple, piece[0])
        elif piece[1]:
            simple.append(list(piece))
    if simple and len(simple[-1]) == 2 and simple[-1][1] < shortest:
        _add_fresh(simple, simple.pop()[1])
    return simple


def _add_fresh(pieces: list[Piece], count: int) -> None:
    if count and pieces and len(pieces[-1]) == 1:
        pieces[-1][0] += count
    elif count:
        pieces.append([count])


def common_start(one: bytes, other: bytes) -> int:
    """Return how many first bytes are equal, by halving: comparing slices is what C does fast."""
    most = min(len(one), len(other))
    for start in range(0, most, _BLOCK):
        same, end = start, min(start + _BLOCK, most)
        if one[same:end] == other[same:end]:
            continue
        while end - same > 1:
            middle = (same + end) // 2
            if one[same:middle] == other[same:middle]:
                same = middle
            else:
                end = middle
        return same
    return most


def common_end(one: bytes, other: bytes, most: int) -> int:
    """Return how many last bytes are equal, `most` at most."""
    same = 0
    a, b = len(one), len(other)
    if one[a - most :] == other[b - most :]:
        return most
    while most - same > 1:
        middle = (same + most) // 2
        if one[a - middle : a - same] == other[b - middle : b - same]:
            same = middle
        else:
            most = middle
    return same
