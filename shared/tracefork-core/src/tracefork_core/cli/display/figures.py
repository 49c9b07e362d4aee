"""Format numbers for people: short, with units, and `—` for unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

UNKNOWN = "—"
_UNITS = ("kB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Return "41 kB"."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in _UNITS:
        amount /= 1000
        if amount < 999.5 or unit == _UNITS[-1]:
            break
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def duration(seconds: float) -> str:
    """Return "0.31 s", "18.2 s" or "2 min 5 s"."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def milliseconds(nanoseconds: int | None) -> str:
    """Return "4,220"."""
    return UNKNOWN if nanoseconds is None else f"{round(nanoseconds / 1e6):,}"


def tokens(count: int | None) -> str:
    """Return "812" or "1.9k"."""
    if count is None:
        return UNKNOWN
    return str(count) if count < 1000 else f"{count / 1000:.1f}k"


def money(dollars: Decimal | None) -> str:
    """Return "$0.0143", with the four digits that tell small sums apart."""
    if dollars is None:
        return UNKNOWN
    if not dollars:
        return "$0"
    if dollars < Decimal("0.0001"):
        return "<$0.0001"
    return f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"


def digest(value: str | None) -> str:
    """Return "b3f2…91ac"."""
    return UNKNOWN if value is None else f"{value[:4]}…{value[-4:]}"


def moment(nanoseconds: int | None) -> str:
    """Return "21 Nov 23:10" in local time, with the year where it is not this one."""
    if not nanoseconds:
        return UNKNOWN
    when = datetime.fromtimestamp(nanoseconds / 1e9, UTC).astimezone()
    this_year = when.year == datetime.now(UTC).astimezone().year
    return when.strftime("%d %b %H:%M" if this_year else "%d %b %Y")


def several(count: int, noun: str, plural: str = "") -> str:
    """Return "1 lane" or "4 lanes"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
