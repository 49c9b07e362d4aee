"""Guess where a value came from that differs between two runs: clock, chance, process or order.

A guess is made only where it explains the whole difference: with every date near now taken for the
same date (every UUID for the same UUID, …), both values must be equal. An edit of anything else is
left without one.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

Source = Literal["clock", "uuid", "token", "random", "address", "process", "order"]

_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_DAY, _MINUTES = timedelta(days=1), timedelta(minutes=5)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_WEEKDAY = r"(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_ZONE = r"(?: ?Z\b| ?UTC| ?GMT| ?[+-]\d\d:?\d\d)?"
_TIME = r"(?:(?:T|,? at |,? )\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?" + _ZONE + ")?"
_ISO = re.compile(rf"(?<!\d){_WEEKDAY}(\d{{4}})[-/.](\d\d)[-/.](\d\d){_TIME}(?![\d])")
_MONTH_FIRST = re.compile(rf"{_WEEKDAY}\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b{_TIME}")
_DAY_FIRST = re.compile(rf"{_WEEKDAY}\b(\d{{1,2}}) {_MONTH},? (\d{{4}})\b{_TIME}")
_EPOCH = re.compile(r"(?<![\w.])(\d{10})(?:(\.\d{1,9})|(\d{3}|\d{6}|\d{9}))?(?![\w.]*\w)")
_CLOCK = re.compile(
    r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:\.\d+)?)?(?![\d:])(?: ?([AaPp])[Mm]\b)?"
)

_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b|(?<![\w.])(?:9[345]|13[89]|140)\d{12}(?![\w.]*\w)")
"""As a `repr` has it, or `id()`: objects lie in a few places of 47 bits."""
_NUMBER = re.compile(r"(?<!\d)\d+(?!\d)")
_FLOAT = re.compile(r"(?<![\w.])-?\d{1,9}\.\d{8,}(?:e-?\d+)?(?![\w.]*\w)")
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_PREFIX = re.compile(r"^[a-z]+[_-]")
_WORD = re.compile(r"[^\s,;|()\[\]{}'\"]+")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_FEW = 3
"""Digits that are also those of a count: in a container, process ids are small."""
_LONGEST_TEXT = 2_000_000

_Pair = tuple[str, str]


def source_of(recorded: object, actual: object, *, now: datetime | None = None) -> Source | None:
    """Return where the difference of two JSON values seems to come from, or None.

    `now` is when the actual value was made, the present unless it is given.
    """
    pair = _text(recorded), _text(actual)
    if pair[0] == pair[1] or max(map(len, pair)) > _LONGEST_TEXT:
        return None
    if is_reordered(recorded, actual):
        return "order"
    near = now or datetime.now(UTC)
    found: Source | None = None
    for source, explained in _EXPLANATIONS:
        rest = explained(pair, near)
        if rest != pair:
            found, pair = found or source, rest
        if pair[0] == pair[1]:
            return found
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_reordered(recorded: object, actual: object) -> bool:
    """Return whether both values are made of the same parts in another order."""
    if isinstance(recorded, list) and isinstance(actual, list):
        return Counter(map(_sorted, recorded)) == Counter(map(_sorted, actual))
    before, now = _WORD.findall(_text(recorded)), _WORD.findall(_text(actual))
    return before != now and Counter(before) == Counter(now)


def _sorted(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _moments(pair: _Pair, now: datetime) -> _Pair:
    """Take two times at the same place for one where the second is now, and the first was once."""

    def dated(read: Callable[[re.Match[str]], datetime | None]) -> Callable[..., bool]:
        return lambda then, here: _was(read(then), now) and _is_near(read(here), now)

    pair = _alike(pair, _ISO, dated(lambda m: _date(m[1], m[2], m[3])))
    pair = _alike(pair, _MONTH_FIRST, dated(lambda m: _date(m[3], _month(m[1]), m[2])))
    pair = _alike(pair, _DAY_FIRST, dated(lambda m: _date(m[3], _month(m[2]), m[1])))
    pair = _alike(pair, _EPOCH, dated(lambda m: _epoch(m[1])))
    return _alike(pair, _CLOCK, lambda _, here: _is_this_minute(here, now))


def _was(moment: datetime | None, now: datetime) -> bool:
    """Return whether a recording can have read a moment from its clock."""
    return moment is not None and _FIRST <= moment <= now + _DAY


def _is_near(moment: datetime | None, now: datetime) -> bool:
    """Return whether a moment is now, in whatever timezone it was written down."""
    return moment is not None and abs(moment - now) <= _DAY + _MINUTES


def _date(year: str, month: str, day: str) -> datetime | None:
    """Return the noon of a day: no timezone is more than a day away from it."""
    try:
        return datetime(int(year), int(month), int(day), 12, tzinfo=UTC)
    except ValueError:
        return None


def _month(name: str) -> str:
    return str(_MONTHS.index(name.lower()) + 1)


def _epoch(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _is_this_minute(found: re.Match[str], now: datetime) -> bool:
    """Return whether a time of day is the present one, here or in UTC."""
    hours = int(found[1])
    if found[3]:
        hours = hours % 12 + (12 if found[3] in "Pp" else 0)
    minutes = hours * 60 + int(found[2])
    local = now.astimezone()
    apart = [abs(minutes - (at.hour * 60 + at.minute)) for at in (now, local)]
    return min(min(gap, 24 * 60 - gap) for gap in apart) <= 2


def _uuids(pair: _Pair, _: datetime) -> _Pair:
    return _alike(pair, _UUID, lambda *_: True)


def _addresses(pair: _Pair, _: datetime) -> _Pair:
    return _alike(pair, _ADDRESS, lambda *_: True)


def _processes(pair: _Pair, _: datetime) -> _Pair:
    own = str(os.getpid())
    return _alike(pair, _NUMBER, lambda _, here: here[0] == own) if len(own) > _FEW else pair


def _floats(pair: _Pair, _: datetime) -> _Pair:
    return _alike(pair, _FLOAT, lambda then, now: not _are_alike(then[0], now[0]))


def _tokens(pair: _Pair, _: datetime) -> _Pair:
    return _alike(pair, _TOKEN, _are_tokens)


def _alike(pair: _Pair, pattern: re.Pattern[str], is_one: Callable[..., bool]) -> _Pair:
    """Return two texts with a mark where what differs at the same place comes from one source."""
    places = [list(pattern.finditer(text)) for text in pair]
    if len(places[0]) != len(places[1]):
        return pair
    pieces: tuple[list[str], list[str]] = ([], [])
    ends = [0, 0]
    for two in zip(*places, strict=True):
        same = two[0][0] != two[1][0] and is_one(*two)
        for i, found in enumerate(two):
            pieces[i].append(pair[i][ends[i] : found.start()])
            pieces[i].append("\0" if same else found[0])
            ends[i] = found.end()
    return "".join([*pieces[0], pair[0][ends[0] :]]), "".join([*pieces[1], pair[1][ends[1] :]])


def _are_tokens(then: re.Match[str], now: re.Match[str]) -> bool:
    return _is_token(then[0]) and _is_token(now[0]) and not _are_alike(then[0], now[0])


def _are_alike(before: str, now: str) -> bool:
    """Return whether two words share more places than chance gives them."""
    shared = sum(a == b for a, b in zip(before, now, strict=False))
    return 2 * shared > min(len(before), len(now))


def _is_token(word: str) -> bool:
    """Return whether a word is hexadecimal, or in base64, as only chance writes."""
    word = _PREFIX.sub("", word.rstrip("="))
    kinds = "".join(
        "d" if c.isdigit() else "U" if c.isupper() else "l" if c.isalpha() else "-" for c in word
    )
    if _HEX.fullmatch(word):
        return len(word) >= 8 and "d" in kinds and len(set(kinds)) > 1
    changes = sum(a != b for a, b in pairwise(kinds))
    return len(word) >= 12 and "d" in kinds and 3 * changes > len(word)


_EXPLANATIONS: tuple[tuple[Source, Callable[[_Pair, datetime], _Pair]], ...] = (
    ("uuid", _uuids),
    ("address", _addresses),
    ("process", _processes),
    ("clock", _moments),
    ("random", _floats),
    ("token", _tokens),
)
