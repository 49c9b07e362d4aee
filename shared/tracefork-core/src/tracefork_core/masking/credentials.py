"""Keep credentials off the tape: they are dropped or masked before anything is written or hashed.

What is dropped at recording is dropped at replay too, so a tape replays under another key, or
none. Headers of a response are kept: an answer comes back with its cookies. Secrets inside bodies
and URL paths are found by their values: see `masking`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_plus, urlsplit, urlunsplit

MASK = "*"

_HEADER = re.compile(r"auth|cookie|credential|jwt|key|passw|secret|session|signature|token")
_QUERY = re.compile(
    r"^(auth|bearer|jwt|key|sig)$|api[-_.]?key|access[-_.]?key|authorization|credential|"
    r"passw|secret|signature|token",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"tokens|(^|[-_.])(page|next|prev|previous|continuation|sync|skip|start|resume)[-_.]?token$",
    re.IGNORECASE,
)
"""Counts of tokens and cursors: part of what is asked."""


@lru_cache(maxsize=1024)
def is_credential(name: str) -> bool:
    """Return whether a request header of this (lower-case) name carries a credential."""
    return bool(_HEADER.search(name))


def without_secrets(query: str) -> str:
    """Return a query string with the values of credentials masked."""
    return "&".join(_masked(pair) for pair in query.split("&")) if query else query


def referer(value: str) -> str:
    """Return the value of the header `referer` without credentials in its URL."""
    if "?" not in value and "@" not in value:
        return value
    scheme, host, path, query, fragment = urlsplit(value)
    host = host.rpartition("@")[2]
    return urlunsplit((scheme, host, path, without_secrets(query), fragment))


def _masked(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    plain = unquote_plus(name)
    if equals and _QUERY.search(plain) and not _NO_SECRET.search(plain):
        return f"{name}={MASK}"
    return pair
