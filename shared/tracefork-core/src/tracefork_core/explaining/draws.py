"""Note the random values and clock reads of a run, and find them again in a prompt.

A prompt rarely contains a drawn value as it was drawn: 16 bytes show as a UUID, nanoseconds as a
date. So each draw is compared in all its usual `spellings`.
"""

from __future__ import annotations

import base64
import re
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from types import FrameType
from typing import Any

import msgspec

from tracefork_core.exchange.caller import behind_made, is_users, place
from tracefork_core.exchange.current import current_session

_PER_LINE = 300
_LONGEST_VALUE = 500
# Shorter words occur in any text by accident.
_LONG, _DISTINCTIVE = 5, 10
_DAYS = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%B %d, %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%d %b %Y",
    "%A",
)
_TIMES = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%H%M%S")


class Draw(msgspec.Struct, frozen=True):
    """A random value or clock read.

    Attributes:
        source: "clock", "entropy", "random" or the name of the function that was called.
        site: the line of the user's code that led there.
        value: nanoseconds for the clock, hexadecimal for entropy, else `str` of the value.
        asked: how many exchanges were asked for before.
        direct: whether the user's own code drew it, not a library.
    """

    source: str
    site: str | None
    value: str
    asked: int = 0
    direct: bool = True


class Notebook:
    """An observer of draws that keeps the last few hundred of each line."""

    def __init__(self) -> None:
        self._draws: dict[tuple[str, str | None], deque[Draw]] = defaultdict(
            lambda: deque(maxlen=_PER_LINE)
        )
        self._lock = threading.RLock()

    def __call__(self, source: str, value: object, frame: FrameType | None) -> None:
        frame = behind_made(frame)
        direct = frame is not None and is_users(frame)
        while frame is not None and not is_users(frame):
            frame = frame.f_back
        site = place(frame) if frame is not None else None
        asked = getattr(current_session(), "asked", 0)
        with self._lock:
            for text in _texts(value):
                draw = Draw(source, site, text[:_LONGEST_VALUE], asked, direct)
                self._draws[source, site].append(draw)

    @property
    def draws(self) -> list[Draw]:
        """The noted draws, grouped by line."""
        with self._lock:
            return [draw for draws in self._draws.values() for draw in draws]


def found_in(text: str, draws: Iterable[Draw]) -> Iterator[tuple[Draw, int]]:
    """Yield the draws that a text contains, each with the number of characters it explains.

    A long word also counts if it is a part of a drawn value: the text may have been cut there.
    """
    words = set(re.findall(r"[^\s\"'(),;]+", text))
    words |= {word.strip(".:!?") for word in words} | {text.strip()}
    longest = max(words, key=len).strip("…")
    for draw in draws:
        matched = [
            min(len(spelled), len(text))
            for spelled in spellings(draw)
            if spelled in words
            or (len(spelled) >= _LONG and spelled in text)
            or (len(longest) >= _DISTINCTIVE and longest in spelled)
        ]
        if matched:
            yield draw, max(matched)


@lru_cache(maxsize=1 << 15)
def spellings(draw: Draw) -> set[str]:
    """Return the usual ways to write a drawn value in a prompt."""
    if draw.source == "clock":
        return set(_moments(int(draw.value)))
    if draw.source == "entropy":
        return set(_bytes(bytes.fromhex(draw.value)))
    texts = {draw.value, draw.value.replace("-", "")}
    texts |= {word for word in draw.value.split() if len(word) >= _LONG}
    if re.fullmatch(r"-?\d+\.\d{3,}", draw.value):
        texts |= {f"{float(draw.value):.{digits}f}" for digits in range(2, 7)}
    return texts - {"", "None"}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, bytes):
        yield value.hex()
    elif isinstance(value, list | tuple):
        yield str(value)
        yield from (str(item) for item in value[:20])
    elif value is not None:
        yield str(value)


def _moments(nanoseconds: int) -> Iterator[str]:
    seconds, rest = divmod(nanoseconds, 10**9)
    yield from (str(seconds), str(nanoseconds), str(nanoseconds // 10**3))
    yield from (str(nanoseconds // 10**6), str(nanoseconds / 10**9))
    yield from (f"{nanoseconds / 10**9:.{digits}f}" for digits in range(1, 7))
    for moment in _readings(seconds, rest // 10**3):
        days = [moment.strftime(day) for day in _DAYS]
        times = [moment.strftime(time) for time in _TIMES]
        yield from (*days, *times, *(day.replace(" 0", " ") for day in days))
        yield moment.isoformat()


def _readings(seconds: int, micros: int) -> Iterator[datetime]:
    utc = datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)
    yield utc
    yield utc.astimezone()


def _bytes(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield from (coded(data).decode().rstrip("=") for coded in (base64.b64encode, _urlsafe))
    if len(data) == 16:
        drawn = uuid.UUID(bytes=data, version=4)
        yield from (str(drawn), drawn.hex, str(uuid.UUID(bytes=data)))
    if len(data) <= 8:
        yield str(int.from_bytes(data))


def _urlsafe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data)
