"""Refuse requests that no program of the user makes: a page in a browser may send them.

A page of another origin can make a browser send requests to 127.0.0.1. The browser then says where
the page is from (Origin). If the page's own name was pointed at 127.0.0.1 (DNS rebinding), the Host
is that name. Both are refused.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

_LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Refused(NamedTuple):
    """A refusal: its status, and the reason in a sentence."""

    status: int
    reason: str


class Door:
    """Lets requests in that name this machine. `host` is the address that the proxy is bound to."""

    def __init__(self, host: str, port: int) -> None:
        self._names = {f"{name}:{port}" for name in _LOCAL}
        self._is_exposed = host not in _LOCAL

    def refusal(self, host: str, origin: str | None) -> Refused | None:
        """Return why a request with these headers is refused; None if it is not."""
        if not self._is_exposed and host.lower() not in self._names:
            return Refused(421, f"the Host {host!r} is not the address of this proxy")
        if origin is not None and urlsplit(origin).netloc.lower() not in self._names:
            return Refused(403, f"a page of {origin!r} may not use this proxy")
        return None
