"""Read the values in spans that other tools wrote: times, and nested names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from tracefork_core.providers.lenient import Json

_NANOSECONDS = 1_000_000_000
_LATEST = 4_102_444_800  # The year 2100, in seconds: larger numbers are of a smaller unit.


def known(attributes: dict[str, Json]) -> dict[str, Json]:
    """Return the attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}


def nanoseconds(value: Json) -> int | None:
    """Return a time as nanoseconds since the epoch; None if it is none.

    It reads ISO 8601, and numbers of seconds, milliseconds, microseconds or nanoseconds.
    """
    if isinstance(value, str):
        if not value.lstrip("-").isdigit():
            return _of_iso(value)
        value = int(value) if len(value) < 20 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    unit = _NANOSECONDS
    while unit > 1 and value * unit > _LATEST * _NANOSECONDS:
        unit //= 1000
    return int(value * unit) if 0 <= value * unit <= _LATEST * _NANOSECONDS else None


def _of_iso(value: str) -> int | None:
    try:
        time = datetime.fromisoformat(value.replace(" UTC", "+00:00"))
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    seconds = (time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    return max(round(seconds * 1_000_000) * 1000, 0)


def unflatten(flat: Iterable[tuple[str, Json]]) -> Json:
    """Return nested values for names like `0.message.content`; numbers count the items of a list.

    Names that contradict one another keep the first.
    """
    root: dict[str, Json] = {}
    for name, value in flat:
        here = root
        *way, last = name.split(".")
        for step in way[:32]:
            inner = here.setdefault(step, {})
            if not isinstance(inner, dict):
                break
            here = inner
        else:
            here.setdefault(last, value)
    return _with_lists(root)


def _with_lists(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    inner = {name: _with_lists(item) for name, item in value.items()}
    if inner and all(name.isascii() and name.isdigit() and len(name) < 7 for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def below(attributes: dict[str, Json], prefix: str) -> Json:
    """Return the attributes whose names begin with `prefix.`, nested."""
    start = f"{prefix}."
    found = [
        (name.removeprefix(start), value)
        for name, value in attributes.items()
        if name.startswith(start)
    ]
    return unflatten(found) if found else attributes.get(prefix)
