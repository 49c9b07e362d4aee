"""The places where exchanges leave the agent. A seam knows its library and nothing else.

Every seam works in two ways. *Ambient*: `AMBIENT` lists what a session switches on for its
duration, class-level instrumentation that needs no change in the agent. *Bound*: `binding` hands
out a client that asks for the current session at request time, for people who want no patching.

One folder per library: `httpx`, `aiohttp`, `requests`; `tools` are functions of the agent with
`@tool` on them. `refusal` is how a seam answers after a divergence, `failure_kinds` lists how each
library can fail, `builtin_failures` how Python can, `cancelling` measures how long a live request
takes to cancel. `framework_instruments` are the patches that adapters bring.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tracefork_core.patching.instrument import Instrument, Undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.seams.binding import bind


def _aiohttp(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.aiohttp.client").instrument(library)  # type: ignore[no-any-return]


def _httpx(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.httpx.client").instrument(library)  # type: ignore[no-any-return]


def _requests(library: ModuleType) -> Undo:
    return import_module("tracefork_core.seams.requests.client").instrument(library)  # type: ignore[no-any-return]


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
