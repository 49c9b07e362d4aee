"""Time-travel debugging for AI agents: record a run at the wire, replay it for nothing, prove it.

The rooms, from the top; each imports only what is below it:

    cli                                        what people touch
    run                                        record and replay: open a session, switch things on
    calibration                                why two recordings of one agent differ
    joining                                    hand a session on to other processes, join one there
    seams | session | determinism | egress     siblings: where exchanges leave, what happens to them
    processes                                  another one: what a child and its parent say
    exchange                                   the contract they share
    providers                                  what the bytes of model providers mean
    tape                                       what a recording is
    errors

Start reading in exchange/contract.py. Names are loaded when they are first used: importing this
package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from tracefork_core.version import __version__

TYPE_CHECKING = False  # typing's own is the same to a type checker, and is most of this import
if TYPE_CHECKING:
    from tracefork_core.determinism.nondet import Drifting, NondetSource
    from tracefork_core.errors import (
        BoundaryError,
        BoundaryWarning,
        DivergenceError,
        EgressError,
        ReplayError,
        SurroundingsWarning,
        TapeError,
        TraceforkError,
        UsageError,
    )
    from tracefork_core.run.record import record
    from tracefork_core.run.replay import replay
    from tracefork_core.seams import bind
    from tracefork_core.tape import Tape

_HOMES = {
    "BoundaryError": "errors",
    "BoundaryWarning": "errors",
    "DivergenceError": "errors",
    "Drifting": "determinism.nondet",
    "EgressError": "errors",
    "NondetSource": "determinism.nondet",
    "ReplayError": "errors",
    "SurroundingsWarning": "errors",
    "Tape": "tape",
    "TapeError": "errors",
    "TraceforkError": "errors",
    "UsageError": "errors",
    "bind": "seams",
    "record": "run",
    "replay": "run",
}

__all__ = [
    "BoundaryError",
    "BoundaryWarning",
    "DivergenceError",
    "Drifting",
    "EgressError",
    "NondetSource",
    "ReplayError",
    "SurroundingsWarning",
    "Tape",
    "TapeError",
    "TraceforkError",
    "UsageError",
    "__version__",
    "bind",
    "record",
    "replay",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
