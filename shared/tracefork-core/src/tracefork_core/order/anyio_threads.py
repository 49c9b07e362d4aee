"""Run the jobs of anyio's worker threads on lanes, whenever their thread was started.

Starlette and FastAPI run sync routes there. A worker serves one request after another. So each job
gets its lane when it is given, and not the thread when it starts: a replay has new threads, and
what was recorded had some that had served other requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_core.exchange.lane import on_lane, works_for
from tracefork_core.order.spawning import job_of, lane_for
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.patching.patch import Patches


def _instrument(library: ModuleType) -> Undo:
    backend = library.AsyncIOBackend
    original = backend.run_sync_in_worker_thread

    @wraps(original)
    async def run_on_lane(
        cls: Any, func: Callable[..., Any], args: Any, *more: Any, **named: Any
    ) -> Any:
        lane = lane_for(job_of(func, args))
        if lane is None:
            return await original(func, args, *more, **named)
        for worker in library._threadpool_workers.get(()):  # noqa: SLF001 - one of them may run it
            works_for(lane, worker)

        def job(*args: Any) -> Any:
            with on_lane(lane):
                return func(*args)

        return await original(job, args, *more, **named)

    patches = Patches()
    patches.replace(backend, "run_sync_in_worker_thread", classmethod(run_on_lane))
    return patches.undo


ANYIO_THREADS = Instrument("anyio._backends._asyncio", _instrument)
