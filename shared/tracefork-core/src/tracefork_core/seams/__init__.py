"""The places where exchanges leave the agent. A seam knows its library and nothing else.

Every seam works in two ways. *Ambient*: a session patches the classes of the libraries in `AMBIENT`
while it is open, and the agent needs no change; installed adapters add theirs. *Bound*:
`libraries` returns a client that asks for the current session at each request, for people who want
no patching.

One folder per library: `httpx`, `aiohttp`, `requests`, `websockets`; `tools` are functions of the
agent that `tracefork.tool` decorates. `failures` are Python's own exceptions from a tape, and how a
seam answers after a divergence; `cancelling` measures how long a live request takes to cancel.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from tracefork_core.patching.instrument import Instrument, Undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.seams.libraries import bind


def _aiohttp(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.aiohttp.client").instrument(library)  # type: ignore[no-any-return]


def _httpx(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.httpx.client").instrument(library)  # type: ignore[no-any-return]


def _httpx2_websockets(library: ModuleType) -> Undo:
    sessions = import_module("tracefork_core.seams.httpx.websockets")
    return sessions.instrument_sessions(library)  # type: ignore[no-any-return]


def _requests(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.requests.client").instrument(library)  # type: ignore[no-any-return]


def _websockets_asyncio(library: ModuleType) -> Undo:
    client = import_module("tracefork_core.seams.websockets.client")
    return client.instrument_asyncio(library)  # type: ignore[no-any-return]


def _websockets_sync(library: ModuleType) -> Undo:
    client = import_module("tracefork_core.seams.websockets.client")
    return client.instrument_sync(library)  # type: ignore[no-any-return]


AMBIENT: tuple[Instrument, ...] = (
    Instrument("httpx", _httpx),
    Instrument("httpx2", _httpx),
    Instrument("httpx2.websockets._api", _httpx2_websockets),
    Instrument("aiohttp", _aiohttp),
    Instrument("requests", _requests),
    Instrument("websockets.asyncio.client", _websockets_asyncio),
    Instrument("websockets.sync.client", _websockets_sync),
)

GROUP = "tracefork.instruments"
"""The group of entry points whose values are an `Instrument`."""

__all__ = ["AMBIENT", "GROUP", "bind", "of_adapters"]


@cache
def of_adapters() -> tuple[Instrument, ...]:
    """Return the instruments of the installed adapters; warn of one that fails to load."""
    # Imported here: a child process needs neither.
    import warnings
    from importlib.metadata import entry_points

    instruments = []
    for point in entry_points(group=GROUP):
        try:
            instruments.append(point.load())
        except Exception as error:
            warnings.warn(
                f"tracefork: the adapter for {point.name} failed to load and is left out: "
                f"{error!r}. Run `tracefork doctor` for details.",
                stacklevel=2,
            )
    return tuple(instruments)


def __getattr__(name: str) -> object:
    # Loaded on first use: a child process switches its seams on before it needs any of this.
    if name != "bind":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tracefork_core.seams.libraries").bind
