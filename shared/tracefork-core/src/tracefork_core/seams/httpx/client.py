"""The seam of httpx and httpx2: one transport around the client's own, sync and async.

The seam lies below redirects, cookies, retries and authentication, and above the connection pool:
every attempt is an exchange. It wraps the transport that `Client._transport_for_url` chooses, which
covers custom transports, mounts and proxies from the environment.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

from tracefork_core.patching.instrument import Undo
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.httpx.family import Family
from tracefork_core.seams.httpx.transports import Transports


@lru_cache(maxsize=4)
def transports(lib: ModuleType) -> Transports:
    """Return the transports of httpx or httpx2."""
    return Transports(Family(lib))


def instrument(lib: ModuleType) -> Undo:
    """Patch every client of `lib`, and return what undoes it."""
    seam, patches = transports(lib), Patches()

    def crossing(original: Callable[..., Any]) -> Callable[..., Any]:
        if hasattr(original, "tracefork"):
            return original  # After httpx2.alias_httpx(), both names are one module.

        def transport_for_url(self: Any, url: Any) -> Any:
            return seam.wrap(self, original(self, url))

        transport_for_url.tracefork = True  # type: ignore[attr-defined]
        return transport_for_url

    for client in (lib.Client, lib.AsyncClient):
        patches.wrap(client, "_transport_for_url", crossing)
    return patches.undo


def is_client(value: object) -> bool:
    """Return whether `value` is a client of httpx or httpx2."""
    return _library_of(value) is not None


def bind_client(client: Any) -> Any:
    """Return a copy of a client whose transports cross the seam; the original is untouched.

    The copy shares the original's pool and keeps the original alive: an SDK client closes its pool
    when it is garbage-collected.
    """
    seam = transports(_library_of(client))
    bound = copy.copy(client)
    bound._transport = seam.wrap(client, client._transport)
    bound._mounts = {
        pattern: None if transport is None else seam.wrap(client, transport)
        for pattern, transport in client._mounts.items()
    }
    bound._tracefork_original = client
    return bound


def _library_of(client: object) -> ModuleType | None:
    import sys

    for name in ("httpx", "httpx2"):
        lib = sys.modules.get(name)
        if lib is not None and isinstance(client, (lib.Client, lib.AsyncClient)):
            return lib
    return None
