"""Record the tasks of a Celery app, one tape for each attempt.

Celery sends a signal before and after each task, in the thread or process that runs it. An attempt
that is to be retried counts as failed. A worker that forks inherits the connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracefork_core.service.messages import served_call
from tracefork_core.service.service_run import Run
from tracefork_core.tape.served import Served

if TYPE_CHECKING:
    from tracefork_core.service.recorder import Recorder

_RETRY = "RETRY"


def connect(recorder: Recorder, app: Any) -> None:
    """Have a recorder record the tasks of an app from now on."""
    signals = import_module("celery.signals")
    tasks = _Tasks(recorder, app)
    for name in ("task_prerun", "task_failure", "task_retry", "task_postrun"):
        getattr(signals, name).connect(getattr(tasks, name), weak=False)


class _Tasks:
    """The tasks of one app that run in this process, by id."""

    def __init__(self, recorder: Recorder, app: Any) -> None:
        self._recorder = recorder
        self._app = app
        self._runs: dict[str, tuple[Run, Any, Any]] = {}
        self._errors: dict[str, BaseException] = {}

    def task_prerun(
        self, *, task_id: str, task: Any, args: Any = (), kwargs: Any = None, **_: Any
    ) -> None:
        """Begin a run."""
        if task.app is not self._app:
            return
        run = self._recorder.begin(task.name, task_id)
        if run is not None:
            self._runs[task_id] = run, args, kwargs

    def task_failure(self, *, task_id: str, exception: BaseException, **_: Any) -> None:
        """Note the exception that ended a task."""
        self._note(task_id, exception)

    def task_retry(self, *, request: Any, reason: Any, **_: Any) -> None:
        """Note the exception that a task is retried for."""
        if isinstance(reason, BaseException):
            self._note(request.id, reason)

    def task_postrun(self, *, task_id: str, state: str | None = None, **_: Any) -> None:
        """End a run."""
        found = self._runs.pop(task_id, None)
        error = self._errors.pop(task_id, None)
        if found is None:
            return
        run, args, kwargs = found
        run.is_unfinished = state == _RETRY

        def served() -> Served:
            assert run.masking is not None
            given = tuple(args or ()), dict(kwargs or {})
            return served_call(run.masking, "task", run.name, run.id, run.outcome, given)

        self._recorder.finish(run, error, served)

    def _note(self, task_id: str, error: BaseException) -> None:
        if task_id in self._runs:
            self._errors[task_id] = error
