"""The places where exchanges leave the agent. A seam knows its library and nothing else.

Every seam works in two ways. *Ambient*: `AMBIENT` lists what a session switches on for its
duration, class-level instrumentation that needs no change in the agent. *Bound*: `binding` hands
out a client that asks for the current session at request time, for people who want no patching.
Functions of the agent's own have a third: `tools.tool` decorates them.

Of each library (`aiohttp_…`, `httpx_…`, `requests_…`) a `…_client` instruments and binds (`ambient`
and `binding` say how); the rest turns requests, bodies and failures into the words of the contract
and back. `refusal` is how a seam says no, `failure_kinds` how its library fails, `builtin_failures`
how Python does, `cancelling` how long it takes to be given up. Tools are `tools` and `tool_…`:
those of a framework by `tool_exchange`, with its `framework_values`. `frameworks` has the
instruments that adapters bring.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tracefork_core.seams.ambient import Instrument, Undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.seams.binding import bind


def _aiohttp(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.aiohttp_client").instrument(library)  # type: ignore[no-any-return]


def _httpx(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.httpx_client").instrument(library)  # type: ignore[no-any-return]


def _requests(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.requests_client").instrument(library)  # type: ignore[no-any-return]


AMBIENT: tuple[Instrument, ...] = (
    Instrument("httpx", _httpx),
    Instrument("httpx2", _httpx),
    Instrument("aiohttp", _aiohttp),
    Instrument("requests", _requests),
)

__all__ = ["AMBIENT", "bind"]


def __getattr__(name: str) -> object:
    # Loaded when it is used: a child process arms its seams before it has a use for them.
    if name != "bind":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tracefork_core.seams.binding").bind
