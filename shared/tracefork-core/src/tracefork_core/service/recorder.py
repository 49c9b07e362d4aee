"""Record every request or task of a service, and keep the tapes of those that failed.

A recorder must never break the service. If anything goes wrong in it, the request is served, one
warning is logged, and `failures` counts it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tracefork_core.chance.entropy import real_urandom
from tracefork_core.errors import UsageError
from tracefork_core.exchange.current import current_session
from tracefork_core.masking.masks import Masks
from tracefork_core.service import folder as tapes
from tracefork_core.service import limits
from tracefork_core.service.held_session import HeldSession, Settings
from tracefork_core.service.service_run import Run, current_run
from tracefork_core.tape import marks
from tracefork_core.tape.schema import Mode, as_mode
from tracefork_core.tape.sealing import new_key
from tracefork_core.tape.served import Served

if TYPE_CHECKING:
    from tracefork_core.service.asgi import App, RecordingMiddleware
    from tracefork_core.service.calls import Recording
    from tracefork_core.service.wsgi import App as Wsgi
    from tracefork_core.service.wsgi import RecordingWsgi

_log = logging.getLogger("tracefork")
_ID_BYTES = 6


class Recorder:
    """Records a service: one tape per request, task or call, kept if it failed.

    Args:
        folder: where the tapes go; it is made if it is missing. Several processes may share it.
        keep: "failed" keeps what ended with an exception, with a status of 500 or above, or was
            marked; "all" keeps everything; a function of a `Run` returns whether to keep it.
        sample: the share of runs that are recorded at all, from 0 to 1.
        max_bytes: the most bytes that the tapes take, a number or text like "500MB".
        max_age: the age after which tapes are removed: seconds, a timedelta, or text like "7d".
        max_tapes: the most tapes.
        mode, mask, seal_to: as for `record`.

    The bounds remove the oldest tapes first, and never one that was marked.

    Attributes:
        folder: as given.
        failures: how often something went wrong in this process, so that a tape is missing.

    Raises:
        UsageError: an option cannot work.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        keep: Literal["failed", "all"] | Callable[[Run], object] = "failed",
        sample: float = 1.0,
        max_bytes: int | str | None = "1GB",
        max_age: float | str | timedelta | None = None,
        max_tapes: int | None = None,
        mode: Mode = "safe",
        mask: Sequence[str] = (),
        seal_to: Sequence[str] = (),
    ) -> None:
        if not (callable(keep) or keep in ("failed", "all")):
            raise UsageError(
                f'tracefork: keep must be "failed", "all" or a function of a run (got {keep!r}).'
            )
        if not limits.is_number(sample) or not 0 <= sample <= 1:
            raise UsageError(f"tracefork: sample must be between 0 and 1 (got {sample!r}).")
        if mask and mode == "raw":
            raise UsageError("tracefork: mode `raw` masks nothing: leave out mask, or the mode.")
        if seal_to and mode != "sealed":
            raise UsageError('tracefork: seal_to is for mode="sealed".')
        self._keep = keep
        self._sample = sample
        self._bounds = tapes.Bounds(
            None if max_bytes is None else limits.bytes_of(max_bytes, "max_bytes"),
            None if max_age is None else limits.seconds_of(max_age, "max_age"),
            None if max_tapes is None else limits.count_of(max_tapes, "max_tapes"),
        )
        readers = tuple(seal_to)
        key = (lambda: new_key(readers)) if as_mode(mode) == "sealed" else None
        if key is not None:
            key()  # It raises now, not in the middle of a request.
        self._settings = Settings(mode, Masks.read(mask), key)
        self.folder = Path(folder).absolute()
        tapes.check_folder(self.folder)
        tapes.sweep(self.folder)
        self.failures = 0
        self._warned: set[str] = set()
        self._writer: ThreadPoolExecutor | None = None
        self._writer_of = 0
        self._lock = threading.Lock()

    def asgi(self, app: App) -> RecordingMiddleware:
        """Wrap an ASGI app: `app.add_middleware(recorder.asgi)`, or `app = recorder.asgi(app)`."""
        from tracefork_core.service.asgi import RecordingMiddleware

        return RecordingMiddleware(app, self)

    def wsgi(self, app: Wsgi) -> RecordingWsgi:
        """Wrap a WSGI app: `app.wsgi_app = recorder.wsgi(app.wsgi_app)` for Flask."""
        from tracefork_core.service.wsgi import RecordingWsgi

        return RecordingWsgi(app, self)

    def celery(self, app: object) -> None:
        """Record the tasks of a Celery app, under each pool of its worker."""
        from tracefork_core.service.celery_signals import connect

        connect(self, app)

    def recording(self, name: str = "", *, id: str = "") -> Recording:  # noqa: A002
        """Record anything else: a sync or async `with` that gives the `Run`, or a decorator.

        Args:
            name: what runs; a decorated function has its own name.
            id: its id; a fresh one if it is empty.
        """
        from tracefork_core.service.calls import Recording

        return Recording(self, name, id)

    def current(self) -> Run:
        """Return the run that this code is part of; if none is recorded, one that stays off."""
        return current_run() or Run("", "", session=None)

    def mark(self, id: str, label: str = "failed") -> bool:  # noqa: A002
        """Mark the tape of an earlier run by the id of its request or task.

        Any process that shares the folder can do this. Return whether there was a tape: with
        `keep="failed"` there is none of a run that succeeded.

        Raises:
            UsageError: the label has other characters than a word or two has.
            OSError: the mark cannot be written.
        """
        marks.check_label(label)
        tape = tapes.find(self.folder, id)
        return tape is not None and marks.mark(tape, label)

    def begin(self, name: str, id: str = "") -> Run | None:  # noqa: A002
        """Begin to record a run here. For adapters of frameworks.

        Return None if it is not in the sample, or if a replay or a fork runs it. `finish` or
        `afinish` must follow, in the same thread or task.
        """
        try:
            session = current_session()
            is_replay = session is not None and session.source is not None
            if is_replay or not self._is_drawn():
                return None
            safe = tapes.safe_id(id) or real_urandom(_ID_BYTES).hex()
            run = Run(name, safe, session=HeldSession(self._settings))
            run.enter()
        except Exception as error:  # noqa: BLE001 - the service goes on
            self._failed(error)
            return None
        return run

    def finish(self, run: Run, error: BaseException | None, served: Callable[[], Served]) -> None:
        """End a run, and write its tape if it is kept."""
        if self._is_kept(run, error):
            self._write(run, served)

    async def afinish(
        self, run: Run, error: BaseException | None, served: Callable[[], Served]
    ) -> None:
        """As `finish`, but write in a thread: the event loop goes on."""
        if self._is_kept(run, error):
            try:
                # In an empty context: the thread is not part of another session.
                written = Context().run(self._writers().submit, self._write, run, served)
            except RuntimeError:  # Python is shutting down.
                self._write(run, served)
            else:
                await asyncio.wrap_future(written)

    def _is_kept(self, run: Run, error: BaseException | None) -> bool:
        try:
            run.leave(error)
        except Exception as problem:  # noqa: BLE001 - the service goes on
            self._failed(problem)
            run.give_up()
            return False
        return run.decide(self._verdict)

    def _verdict(self, run: Run) -> bool:
        if self._keep == "all":
            return True
        if self._keep == "failed":
            return run.failed
        try:
            return bool(self._keep(run))
        except Exception as error:  # noqa: BLE001 - the tape may be the only evidence
            self._failed(error)
            return True

    def _write(self, run: Run, served: Callable[[], Served]) -> None:
        try:
            run.write(self.folder, served())
            if self._bounds != tapes.Bounds():
                tapes.shrink(self.folder, self._bounds)
        except Exception as error:  # noqa: BLE001 - the service goes on
            self._failed(error)
            run.give_up()

    def _failed(self, error: Exception) -> None:
        """Count a failure, and log the first of each kind."""
        with self._lock:
            self.failures += 1
            kind = type(error).__name__
            is_new = kind not in self._warned
            self._warned.add(kind)
        if is_new:
            message = str(error).removeprefix("tracefork: ") or kind
            _log.warning(
                "tracefork: a run was not recorded: %s Later failures like this are only counted "
                "(Recorder.failures).",
                message,
                exc_info=error,
            )

    def _is_drawn(self) -> bool:
        """Draw from the system, so that the app's own random numbers stay as they are."""
        if self._sample >= 1:
            return True
        return int.from_bytes(real_urandom(7)) / 2**56 < self._sample

    def _writers(self) -> ThreadPoolExecutor:
        """Return the thread that writes; a forked worker gets its own."""
        with self._lock:
            if self._writer is None or self._writer_of != os.getpid():
                self._writer = ThreadPoolExecutor(1, thread_name_prefix="tracefork-recorder")
                self._writer_of = os.getpid()
            return self._writer
