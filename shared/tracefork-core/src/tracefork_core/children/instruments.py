"""Instruments of a session that concern processes, and all that a child process arms.

In a child everything waits for its library: one that is never imported costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import cast

from tracefork_core.children import forks
from tracefork_core.children.child.lazy_chance import Waking, when_loaded
from tracefork_core.children.protocol.invitation import Invitation
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.seams import AMBIENT


def _process(library: ModuleType) -> Undo:
    from tracefork_core.children.multiprocess import instrument_process

    return instrument_process(library)


def _executor(library: ModuleType) -> Undo:
    from tracefork_core.children.multiprocess import instrument_executor

    return instrument_executor(library)


def _pool(library: ModuleType) -> Undo:
    from tracefork_core.children.multiprocess import instrument_pool

    return instrument_pool(library)


def _spawning(_: ModuleType) -> Undo:
    spawning = import_module("tracefork_core.order.spawning")
    if hasattr(spawning, "start"):
        _start(spawning)
    else:  # This program records: what imports asyncio at this moment is that very module.
        when_loaded(cast(ModuleSpec, spawning.__spec__), lambda: _start(spawning))
    return lambda: _stop(spawning)


def _start(spawning: ModuleType) -> None:
    spawning.start()


def _stop(spawning: ModuleType) -> None:
    spawning.stop()


PROCESSES = (
    Instrument("multiprocessing.process", _process),
    Instrument("concurrent.futures.process", _executor),
    Instrument("multiprocessing.pool", _pool),
)
_TASKS = Instrument("asyncio", _spawning)


def arm(invitation: Invitation) -> None:
    """Let this child process be part of a run, for the rest of its life."""
    for instrument in (*PROCESSES, _TASKS):
        instrument.on()
    if invitation.ambient:
        for instrument in AMBIENT:
            instrument.on()
    Waking(_start_chance).begin()


def _start_chance() -> None:
    for arrival in forks.arrivals:
        arrival.start_chance()
    forks.come_last()  # After those of the clock and of entropy, which are loaded by now.
