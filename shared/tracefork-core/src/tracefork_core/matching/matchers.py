"""The matchers that are asked for by name, at replay: each widens what counts as equal.

json                JSON bodies are equal when their values are (key order, white space)
ignore:/pointer     the value at this JSON pointer of the body is not compared
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tracefork_core.errors import UsageError
from tracefork_core.tape.json_pointer import child, parts

_IGNORE = "ignore:"


def check_matchers(matchers: Sequence[str]) -> None:
    """Refuse a matcher nobody knows.

    Raises:
        UsageError: a name is neither `json` nor `ignore:/pointer`.
    """
    if isinstance(matchers, str):
        raise UsageError(f"tracefork: match takes a list of names: match=[{matchers!r}].")
    for matcher in matchers:
        if matcher != "json" and not matcher.startswith(f"{_IGNORE}/"):
            raise UsageError(
                f"tracefork: no matcher {matcher!r}. There are `json` and `ignore:/json/pointer`."
            )


def is_ignored(pointer: str, matchers: Sequence[str]) -> bool:
    """Return whether the named matchers take the value at a JSON pointer out of the comparison."""
    ignored = (matcher.removeprefix(_IGNORE) for matcher in matchers)
    return any(pointer == place or pointer.startswith(f"{place}/") for place in ignored)


def matched(body: bytes, matchers: Sequence[str]) -> bytes:
    """Return the body as the named matchers compare it; what is not JSON they leave alone."""
    try:
        document = json.loads(body)
        for matcher in matchers:
            if matcher != "json":
                _remove(document, matcher.removeprefix(_IGNORE))
        return json.dumps(document, sort_keys=True).encode()
    except (ValueError, RecursionError):
        return body


def _remove(document: object, pointer: str) -> None:
    """Delete the value at an RFC 6901 pointer, if there is one."""
    *way, last = parts(pointer)
    place = document
    for part in way:
        place = child(place, part)
    if isinstance(place, dict):
        place.pop(last, None)
    elif isinstance(place, list) and last.isdecimal() and int(last) < len(place):
        place[int(last)] = None
