"""The places where exchanges leave the agent. A seam knows its library and nothing else.

Every seam works in two ways. *Ambient*: `AMBIENT` lists what a session switches on for its
duration, class-level instrumentation that needs no change in the agent. *Bound*: `bind` hands out
a client that asks for the current session at request time, for people who want no patching.
"""

from __future__ import annotations

from tracefork_core.seams import aiohttp_client, httpx_family
from tracefork_core.seams.ambient import Instrument
from tracefork_core.seams.binding import bind

AMBIENT: tuple[Instrument, ...] = (
    Instrument("httpx", httpx_family.instrument),
    Instrument("httpx2", httpx_family.instrument),
    Instrument("aiohttp", aiohttp_client.instrument),
)

__all__ = ["AMBIENT", "bind"]
