"""Replace the transports of `mcp` while a session is open, and put them back when it ends.

`stdio_client` and its siblings are decorated generators, which programs and frameworks import by
name. So the name stays, and the generator inside the decorator is replaced: every reference to the
transport then leads to ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import CellType, ModuleType
from typing import Any

from tracefork_core.adapters import Patches
from tracefork_mcp import ADAPTER

_TRANSPORTS = {
    "mcp.client.stdio": "stdio_client",
    "mcp.client.sse": "sse_client",
    "mcp.client.streamable_http": "streamable_http_client",
    "mcp.client.websocket": "websocket_client",
}


def _put_in(patches: Patches, _: ModuleType) -> None:
    for module in _MODULES:
        patches.switch(module.on, module.off)


def _replace(name: str, patches: Patches, module: ModuleType) -> None:
    from tracefork_mcp.transports import connected

    cell = _generator_of(getattr(module, name))
    original = cell.cell_contents

    def put(generator: Callable[..., Any]) -> None:
        cell.cell_contents = generator

    ours = partial(connected, name, original)
    patches.switch(partial(put, ours), partial(put, original))


def _generator_of(transport: Any) -> CellType:
    """Return the cell in which `asynccontextmanager` keeps the generator that it decorates.

    Raises:
        AttributeError: it has no such cell. This version of `mcp` is not supported.
    """
    names = transport.__code__.co_freevars
    if "func" not in names:
        raise AttributeError(f"{transport.__module__}.{transport.__name__} is no async generator")
    cell: CellType = transport.__closure__[names.index("func")]
    return cell


def _of_client(patches: Patches, module: ModuleType) -> None:
    """Let a `Client` that was made before the session find its transport when it connects."""

    def connecting(original: Any) -> Any:
        @wraps(original)
        async def entered(self: Any) -> Any:
            transport = None
            if isinstance(self.server, str):
                transport = module.streamable_http_client(self.server)
            elif isinstance(self.server, module.StdioServerParameters):
                transport = module.stdio_client(self.server)
            if transport is not None:
                self._connect = module._connect_transport(transport)  # noqa: SLF001
            return await original(self)

        return entered

    patches.wrap(module.Client, "__aenter__", connecting)


_MODULES = [
    ADAPTER.instrument(module, partial(_replace, name)) for module, name in _TRANSPORTS.items()
]
_MODULES.append(ADAPTER.instrument("mcp.client.client", _of_client))

INSTRUMENT = ADAPTER.instrument("mcp", _put_in)
"""Every session applies it, once `mcp` is imported: see the entry point."""
