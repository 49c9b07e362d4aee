"""Record anything that is no request of a known framework: a block, or a decorated function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tracefork_core.errors import UsageError
from tracefork_core.run.decorated import decorated
from tracefork_core.service.messages import served_call
from tracefork_core.service.service_run import Run
from tracefork_core.tape.served import Served

if TYPE_CHECKING:
    from tracefork_core.service.recorder import Recorder

F = TypeVar("F", bound=Callable[..., Any])


class Recording(AbstractContextManager[Run], AbstractAsyncContextManager[Run]):
    """A block that is recorded, or a decorator. `Recorder.recording` makes it."""

    def __init__(self, recorder: Recorder, name: str, run: str) -> None:
        self._recorder = recorder
        self._name = name
        self._id = run
        self._run: Run | None = None

    def __enter__(self) -> Run:
        if self._run is not None:
            raise UsageError("tracefork: this block is open already; call recording() again.")
        self._run = self._recorder.begin(self._name or "block", self._id)
        return self._run or Run(self._name, self._id, session=None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._recorder.finish(run, error, lambda: _served(run))

    async def __aenter__(self) -> Run:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            await self._recorder.afinish(run, error, lambda: _served(run))

    def __call__(self, function: F) -> F:
        """Record each call of a function, sync or async."""
        name = self._name or function.__qualname__
        return decorated(
            function,
            lambda: Recording(self._recorder, name, self._id),
            "Put a `with recorder.recording(…)` around the loop that uses it.",
        )


def _served(run: Run) -> Served:
    assert run.masking is not None
    return served_call(run.masking, "call", run.name, run.id, run.outcome)
