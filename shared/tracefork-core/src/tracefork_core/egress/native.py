"""Modules that open sockets in native code, where no audit hook sees them.

What such a module sends is not on the tape, and a replay cannot refuse it. So a run that loads one
names it. Some frameworks load gRPC and never use it: it is named once a channel was made, with the
channel's target where a recording counts connections.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_core.egress.guard import watches_here
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.patching.patch import Patches

NATIVE = {
    "grpcio": "opens sockets in C: the guard does not see them",
    "uvloop": "resolves names and connects in C: the guard does not see all of it",
    "curl-cffi": "opens sockets in C: the guard does not see them",
    "pycurl": "opens sockets in C: the guard does not see them",
    "psycopg": "libpq opens sockets in C: the guard does not see them",
    "psycopg2": "libpq opens sockets in C: the guard does not see them",
    "psycopg2-binary": "libpq opens sockets in C: the guard does not see them",
    "pyzmq": "opens sockets in C: the guard does not see them",
    "primp": "opens sockets in Rust: the guard does not see them",
    "hf-xet": "opens sockets in Rust: the guard does not see them",
}
"""The distributions with such a module, and what each does."""
_IMPORTED_AS = {
    "grpcio": "grpc",
    "curl-cffi": "curl_cffi",
    "psycopg2-binary": "psycopg2",
    "pyzmq": "zmq",
    "hf-xet": "hf_xet",
}
"""The names of those modules, where they differ."""
_GRPC = "grpc"

_MODULES = {_IMPORTED_AS.get(name, name) for name in NATIVE} - {_GRPC}


def native_modules() -> set[str]:
    """Return those modules that are loaded in this process; gRPC is left out."""
    return {name for name in _MODULES if name in sys.modules}


def _instrument(module: ModuleType) -> Undo:
    patches = Patches()
    patches.wrap(module.Channel, "__init__", _noted)
    return patches.undo


def _noted(make: Callable[..., None]) -> Callable[..., None]:
    @wraps(make)
    def made(self: Any, target: str, *args: Any, **options: Any) -> None:
        for watch in watches_here():
            watch.opening_native(_GRPC, target)
        make(self, target, *args, **options)

    return made


GRPC_CHANNELS = tuple(
    Instrument(name, _instrument) for name in ("grpc._channel", "grpc.aio._channel")
)
"""Name the targets of gRPC while a session is open; the package loads these late."""
