"""What was drawn during a run, by which line, and how such a value is spelled in a prompt."""

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

_KEPT = 300
_LONGEST = 500
_LONG, _TELLING = 5, 10
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
    """One value that was drawn.

    `source` is clock, entropy, random or the function that was called; `site` the line of the
    user's code that led there; `value` nanoseconds, hexadecimal or `str` of it; `asked` how many
    exchanges were asked for before; `direct` that the user's own code drew, and no library for it.
    """

    source: str
    site: str | None
    value: str
    asked: int = 0
    direct: bool = True


class Notebook:
    """An observer of draws: keeps the last few hundred of each line."""

    def __init__(self) -> None:
        self._draws: dict[tuple[str, str | None], deque[Draw]] = defaultdict(
            lambda: deque(maxlen=_KEPT)
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
                draw = Draw(source, site, text[:_LONGEST], asked, direct)
                self._draws[source, site].append(draw)

    @property
    def draws(self) -> list[Draw]:
        """What was drawn, by line."""
        with self._lock:
            return [draw for kept in self._draws.values() for draw in kept]


def found_in(text: str, draws: Iterable[Draw]) -> Iterator[tuple[Draw, int]]:
    """Yield the draws that a piece of text spells, each with how many characters of it that is.

    A long word counts that is a part of a value: a text may have been cut there.
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
            or (len(longest) >= _TELLING and longest in spelled)
        ]
        if matched:
            yield draw, max(matched)


@lru_cache(maxsize=1 << 15)
def spellings(draw: Draw) -> set[str]:
    """Return the usual ways to write a drawn value."""
    if draw.source == "clock":
        return set(_moments(int(draw.value)))
    if draw.source == "entropy":
        return set(_bytes(bytes.fromhex(draw.value)))
    found = {draw.value, draw.value.replace("-", "")}
    found |= {word for word in draw.value.split() if len(word) >= _LONG}
    if re.fullmatch(r"-?\d+\.\d{3,}", draw.value):
        found |= {f"{float(draw.value):.{digits}f}" for digits in range(2, 7)}
    return found - {"", "None"}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, bytes):
        yield value.hex()
    elif isinstance(value, list | tuple):
        yield str(value)
        yield from (str(one) for one in value[:20])
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
