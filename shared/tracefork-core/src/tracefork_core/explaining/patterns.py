"""Recognise what kind of value differs between two runs: a time, a UUID, a token, an address.

`_PATTERNS` is the one table of such kinds; `advice` says what to do about each. A kind is named
only if it explains the whole difference: after each pair of times (UUIDs, …) at the same place is
taken for the same time, both values must be equal. So an ordinary edit of a prompt has no kind.
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

Kind = Literal["clock", "uuid", "token", "random", "address", "process", "order"]

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
_TIME_OF_DAY = re.compile(
    r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:\.\d+)?)?(?![\d:])(?: ?([AaPp])[Mm]\b)?"
)

_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_ANY_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b")
# As a `repr` shows it, or `id()`: objects lie in a few ranges of the 47-bit address space.
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b|(?<![\w.])(?:9[345]|13[89]|140)\d{12}(?![\w.]*\w)")
_NUMBER = re.compile(r"(?<!\d)\d+(?!\d)")
_FLOAT = re.compile(r"(?<![\w.])-?\d{1,9}\.\d{8,}(?:e-?\d+)?(?![\w.]*\w)")
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_PREFIX = re.compile(r"^[a-z]+[_-]")
_WORD = re.compile(r"[^\s,;|()\[\]{}'\"]+")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
# In a container, process ids are as small as the counts in a prompt: those are not guessed.
_COUNT_DIGITS = 3
_LONGEST_TEXT = 2_000_000

_Pair = tuple[str, str]
_Match = re.Match[str]
_Accepts = Callable[[_Match, _Match, datetime], bool]
"""Whether a recorded and a present match, at the present time, have the same source."""


def kind_of(recorded: object, actual: object, *, now: datetime | None = None) -> Kind | None:
    """Return what kind of value differs between two JSON values, or None.

    `now` is when the actual value was made (default: the present).
    """
    pair = _text(recorded), _text(actual)
    if pair[0] == pair[1] or max(map(len, pair)) > _LONGEST_TEXT:
        return None
    if is_reordered(recorded, actual):
        return "order"
    present = now or datetime.now(UTC)
    first: Kind | None = None
    for kind, pattern, accepts in _PATTERNS:
        rest = _without(pair, pattern, accepts, present)
        if rest != pair:
            first, pair = first or kind, rest
        if pair[0] == pair[1]:
            return first
    return None


def is_reordered(recorded: object, actual: object) -> bool:
    """Return whether both values consist of the same parts in another order."""
    if isinstance(recorded, list) and isinstance(actual, list):
        return Counter(map(_sorted, recorded)) == Counter(map(_sorted, actual))
    before, now = _WORD.findall(_text(recorded)), _WORD.findall(_text(actual))
    return before != now and Counter(before) == Counter(now)


def has_uuid(text: str) -> bool:
    """Return whether a text contains a UUID, with or without its hyphens."""
    return _ANY_UUID.search(text) is not None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sorted(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _without(pair: _Pair, pattern: re.Pattern[str], accepts: _Accepts, now: datetime) -> _Pair:
    """Replace each accepted pair of matches at the same place by the same mark."""
    matches = [list(pattern.finditer(text)) for text in pair]
    if len(matches[0]) != len(matches[1]):
        return pair
    pieces: tuple[list[str], list[str]] = ([], [])
    ends = [0, 0]
    for two in zip(*matches, strict=True):
        accepted = two[0][0] != two[1][0] and accepts(two[0], two[1], now)
        for i, match in enumerate(two):
            pieces[i].append(pair[i][ends[i] : match.start()])
            pieces[i].append("\0" if accepted else match[0])
            ends[i] = match.end()
    return "".join([*pieces[0], pair[0][ends[0] :]]), "".join([*pieces[1], pair[1][ends[1] :]])


def _times(read: Callable[[_Match], datetime | None]) -> _Accepts:
    """Accept two times if the recorded one is past and the present one is now."""
    return lambda then, here, now: _was(read(then), now) and _is_near(read(here), now)


def _was(moment: datetime | None, now: datetime) -> bool:
    """Return whether a recording can have read this time from its clock."""
    return moment is not None and _FIRST <= moment <= now + _DAY


def _is_near(moment: datetime | None, now: datetime) -> bool:
    """Return whether a time is now, whatever its timezone."""
    return moment is not None and abs(moment - now) <= _DAY + _MINUTES


def _date(year: str, month: str, day: str) -> datetime | None:
    """Return the noon of a day: the same day is at most a day away in every timezone."""
    try:
        return datetime(int(year), int(month), int(day), 12, tzinfo=UTC)
    except ValueError:
        return None


def _month(name: str) -> str:
    return str(_MONTHS.index(name.lower()) + 1)


def _is_this_minute(_: _Match, here: _Match, now: datetime) -> bool:
    """Return whether a time of day is the present one, in local time or UTC."""
    hours = int(here[1])
    if here[3]:
        hours = hours % 12 + (12 if here[3] in "Pp" else 0)
    minutes = hours * 60 + int(here[2])
    local = now.astimezone()
    apart = [abs(minutes - (at.hour * 60 + at.minute)) for at in (now, local)]
    return min(min(gap, 24 * 60 - gap) for gap in apart) <= 2


def _always(_then: _Match, _here: _Match, _now: datetime) -> bool:
    return True


def _is_this_process(_: _Match, here: _Match, _now: datetime) -> bool:
    own = str(os.getpid())
    return len(own) > _COUNT_DIGITS and here[0] == own


def _are_unlike(then: _Match, here: _Match, _: datetime) -> bool:
    return not _are_alike(then[0], here[0])


def _are_tokens(then: _Match, here: _Match, _: datetime) -> bool:
    return _is_token(then[0]) and _is_token(here[0]) and not _are_alike(then[0], here[0])


def _are_alike(before: str, now: str) -> bool:
    """Return whether two words share more characters than two random words would."""
    shared = sum(a == b for a, b in zip(before, now, strict=False))
    return 2 * shared > min(len(before), len(now))


def _is_token(word: str) -> bool:
    """Return whether a word is random hexadecimal or base64, by its mix of characters."""
    word = _PREFIX.sub("", word.rstrip("="))
    kinds = "".join(
        "d" if c.isdigit() else "U" if c.isupper() else "l" if c.isalpha() else "-" for c in word
    )
    if _HEX.fullmatch(word):
        return len(word) >= 8 and "d" in kinds and len(set(kinds)) > 1
    changes = sum(a != b for a, b in pairwise(kinds))
    return len(word) >= 12 and "d" in kinds and 3 * changes > len(word)


# The order matters: a UUID contains what looks like a token, a float what looks like a process id.
_PATTERNS: tuple[tuple[Kind, re.Pattern[str], _Accepts], ...] = (
    ("uuid", _UUID, _always),
    ("address", _ADDRESS, _always),
    ("process", _NUMBER, _is_this_process),
    ("clock", _ISO, _times(lambda m: _date(m[1], m[2], m[3]))),
    ("clock", _MONTH_FIRST, _times(lambda m: _date(m[3], _month(m[1]), m[2]))),
    ("clock", _DAY_FIRST, _times(lambda m: _date(m[3], _month(m[2]), m[1]))),
    ("clock", _EPOCH, _times(lambda m: datetime.fromtimestamp(int(m[1]), UTC))),
    ("clock", _TIME_OF_DAY, _is_this_minute),
    ("random", _FLOAT, _are_unlike),
    ("token", _TOKEN, _are_tokens),
)
