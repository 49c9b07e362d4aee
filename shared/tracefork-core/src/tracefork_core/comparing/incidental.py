"""Replace what a run puts into its texts that any other run of it would not: its clock, its ids.

A time counts as the clock of a run only if the run could have read it: a date must be the day of
the run, and a time must lie within it. So `search_flights(date="2026-12-01")` stays as it is,
unless it was asked on that day. Ids are UUIDs, ULIDs, the ids that providers give, and addresses of
objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tracefork_core.tape import Tape

_ID, _CLOCK, _DAY = "<id>", "<clock>", "<today>"
_LONGEST_TEXT = 2_000_000
_SLACK = timedelta(seconds=2)

_PREFIXES = (
    "chatcmpl|call|toolu|srvtoolu|tooluse|msg|resp|rs|fc|run|lc_run|req|thread|asst|gen|item|evt"
)
_IDS = re.compile(
    r"\b[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\b"
    r"|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"
    rf"|\b(?:{_PREFIXES})[-_]+(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{{6,}}"
    r"|\b0x[0-9a-f]{6,16}\b"
)
_ISO = re.compile(
    r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r"(?: ?(Z|UTC|[+-]\d\d:?\d\d)(?!\d))?)?(?![\d-])"
)
_WORDS = re.compile(
    r"\b(?:(?P<d1>\d{1,2}) (?P<m1>[A-Z][a-z]{2,8})|(?P<m2>[A-Z][a-z]{2,8}) (?P<d2>\d{1,2}))"
    r"(?:st|nd|rd|th)?,? (?P<y>\d{4})\b"
)
_EPOCH = re.compile(r"(?<![\w.])(1\d{9})(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?(?![\w.]*\w)")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


class Incidental:
    """The clock of one run, to be replaced in its texts.

    A branch continues the clock of its parent, so that the times of both count.
    """

    def __init__(self, tape: Tape) -> None:
        self._spans = list(_spans(tape))
        self._days = {
            (at.year, at.month, at.day)
            for start, end in self._spans
            for moment in (start, end)
            for at in (moment, moment.astimezone())
        }

    def plain(self, text: str) -> str:
        """Return a text with marks in place of the run's own times, and of ids."""
        if len(text) > _LONGEST_TEXT or not _has_digit(text):
            return text
        text = _IDS.sub(_ID, text)
        text = _ISO.sub(self._iso, text)
        text = _WORDS.sub(self._date_in_words, text)
        return _EPOCH.sub(self._epoch, text)

    def number(self, value: float) -> float | str:
        """Return a mark in place of a number that is a moment of the run, in seconds or less."""
        if value < 10**9:
            return value
        return _CLOCK if self._epoch_in(str(value)) else value

    def _iso(self, match: re.Match[str]) -> str:
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        if hour is None:
            return _DAY if self._is_today(int(year), int(month), int(day)) else match[0]
        try:
            moment = datetime.fromisoformat(
                f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}"
                f"{'.' + fraction[:6] if fraction else ''}"
                f"{'+00:00' if zone in ('Z', 'UTC') else zone or ''}"
            )
        except ValueError:
            return match[0]
        precision = timedelta(seconds=0 if second else 60)
        return _CLOCK if self._is_in(moment, precision) else match[0]

    def _date_in_words(self, match: re.Match[str]) -> str:
        month = (match["m1"] or match["m2"])[:3].lower()
        if month not in _MONTHS:
            return match[0]
        day = int(match["d1"] or match["d2"])
        found = self._is_today(int(match["y"]), _MONTHS.index(month) + 1, day)
        return _DAY if found else match[0]

    def _epoch(self, match: re.Match[str]) -> str:
        return _CLOCK if self._epoch_in(match[0]) else match[0]

    def _epoch_in(self, text: str) -> bool:
        try:
            moment = datetime.fromtimestamp(float(text[:10]), UTC)
        except (ValueError, OverflowError, OSError):
            return False
        return self._is_in(moment, timedelta(seconds=1))

    def _is_today(self, *day: int) -> bool:
        return day in self._days

    def _is_in(self, moment: datetime, precision: timedelta) -> bool:
        """Return whether a time lies in the run; one without a zone is of UTC or of here."""
        at = [moment] if moment.tzinfo else [moment.replace(tzinfo=UTC), moment.astimezone()]
        return any(
            start - _SLACK - precision <= one <= end + _SLACK
            for start, end in self._spans
            for one in at
        )


def _spans(tape: Tape | None) -> Iterator[tuple[datetime, datetime]]:
    while tape is not None:
        started = tape.environment.started if tape.environment else 0
        took = tape.receipt.took if tape.receipt else _so_far(tape, started)
        if started:
            begin = datetime.fromtimestamp(started / 1e9, UTC)
            yield begin, begin + timedelta(microseconds=took / 1e3)
        tape = tape.parent


def _so_far(tape: Tape, started: int) -> int:
    """Return how long a run took that was cut off, or that still records."""
    last = max((one.aside.started + (one.aside.took or 0) for one in tape.exchanges), default=0)
    return max(0, last - started)


def _has_digit(text: str) -> bool:
    return any(digit in text for digit in "0123456789")
