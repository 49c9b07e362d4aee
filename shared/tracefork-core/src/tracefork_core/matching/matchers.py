"""The matchers that a replay may name. Each of them widens what counts as equal.

json                JSON bodies are equal if their values are; key order and spaces may differ
ignore:/pointer     the value at this JSON pointer of the body is not compared
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tracefork_core.errors import UsageError
from tracefork_core.tape.json_pointer import child, parts

_IGNORE = "ignore:"


def check_matchers(matchers: Sequence[str]) -> None:
    """Refuse unknown matchers.

    Raises:
        UsageError: a name is neither `json` nor `ignore:/pointer`.
    """
    if isinstance(matchers, str):
        raise UsageError(f"tracefork: match must be a list of names: match=[{matchers!r}].")
    for matcher in matchers:
        if matcher != "json" and not matcher.startswith(f"{_IGNORE}/"):
            raise UsageError(
                f"tracefork: unknown matcher {matcher!r}. Use `json` or `ignore:/json/pointer`."
            )


def is_ignored(pointer: str, matchers: Sequence[str]) -> bool:
    """Return whether the named matchers ignore the value at a JSON pointer."""
    ignored = (matcher.removeprefix(_IGNORE) for matcher in matchers)
    return any(pointer == prefix or pointer.startswith(f"{prefix}/") for prefix in ignored)


def matched(body: bytes, matchers: Sequence[str]) -> bytes:
    """Return the body as the named matchers compare it; a body that is not JSON stays as it is."""
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
    *path, last = parts(pointer)
    parent = document
    for part in path:
        parent = child(parent, part)
    if isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
        parent[int(last)] = None
