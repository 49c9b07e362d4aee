"""Record a test the first time it runs, and replay it from then on.

A recording counts once its block has ended without an error. Until then it has another name, so
that a failed first run leaves no tape, and a failed renewal leaves the one before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

from tracefork_core.errors import UsageError
from tracefork_core.run.record import Recording, record
from tracefork_core.run.replay import Replaying, replay
from tracefork_core.run.scope import Scope

When = Literal["once", "never", "all"]
"""When a tape is recorded: if it does not exist, never, or each time."""

VARIABLE = "TRACEFORK_RECORD"
"""The environment variable that says so for all tapes of a run of tests."""

_NO = ("", "0", "false")


class UseTape:
    """A block, sync or async, that is recorded or replayed: `use_tape` makes it."""

    def __init__(
        self, path: Path, when: When | None, options: dict[str, Any], *, strict: bool
    ) -> None:
        self._path = path
        self._when = when
        self._options = options
        self._strict = strict
        self._new: Path | None = None
        self._scope: Scope[Any] | None = None

    def __enter__(self) -> Recording | Replaying:
        when = _when(self._when)
        if self._scope is not None:
            raise UsageError("tracefork: this block is open already; make another for each run.")
        if when == "never" or (when == "once" and self._path.exists()):
            scope: Scope[Any] = replay(self._existing(), strict=self._strict, **self._options)
        else:
            self._check_may_record(when)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._new = self._path.with_name(f".{self._path.name}.{os.getpid()}.new")
            scope = record(self._new, overwrite=True, **self._options)
        run: Recording | Replaying = scope.__enter__()
        self._scope = scope
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        scope, self._scope = self._scope, None
        new, self._new = self._new, None
        if scope is None:
            return False
        is_whole = False
        try:
            is_handled = scope.__exit__(kind, error, traceback)
            is_whole = error is None
        finally:
            if new is not None and is_whole:
                new.replace(self._path)
            elif new is not None:
                new.unlink(missing_ok=True)
        return is_handled

    async def __aenter__(self) -> Recording | Replaying:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self.__exit__(kind, error, traceback)

    def _existing(self) -> Path:
        if self._path.exists():
            return self._path
        raise UsageError(
            f"tracefork: there is no tape {self._path}, and none is recorded here. Record it: run "
            f"this with {VARIABLE}=once."
        )

    def _check_may_record(self, when: When) -> None:
        """Refuse to record on a build server: a person has to look at a new tape."""
        if os.environ.get(VARIABLE) or os.environ.get("CI", "").lower() in _NO:
            return
        lacks = "there is no tape" if when == "once" else "a new tape is asked for:"
        raise UsageError(
            f"tracefork: {lacks} {self._path}, and tests on a build server (CI is set) record "
            f"nothing by themselves. Run the test on your machine and commit the tape, or set "
            f"{VARIABLE}={when}."
        )


def _when(given: When | None) -> When:
    """Return what the environment says, else what the program says, else "once"."""
    said = os.environ.get(VARIABLE) or given or "once"
    for when in get_args(When):
        if said == when:
            return when  # type: ignore[no-any-return]
    raise UsageError(f"tracefork: {VARIABLE} (record) must be once, never or all (got {said!r}).")


def use_tape(
    path: str | Path,
    *,
    record: When | None = None,
    ambient: bool = True,
    mask: Sequence[str] = (),
    strict: bool = False,
) -> UseTape:
    """Record what runs inside if there is no such tape, and replay it if there is: for tests.

        with use_tape("tapes/refund.tape"):
            assert agent.run_sync("Refund order 7.").output == "Done."

    It is a sync or async `with`. If the block raises an error, a recording is not kept. On a build
    server (the variable `CI` is set) nothing is recorded, unless TRACEFORK_RECORD says so.

    Args:
        path: the tape. Its folder is made.
        record: "once" where there is no tape, the default; "never"; or "all", which records again.
            The environment variable TRACEFORK_RECORD has precedence.
        ambient: as for `tracefork.record`.
        mask: as for `tracefork.record`.
        strict: as for `tracefork.replay`.

    Raises:
        UsageError: there is no tape, and none is recorded here; no such value of `record`.
        DivergenceError: the run asked for something else than the tape holds, for more, or for
            less.
    """
    options = {"ambient": ambient, "mask": mask}
    return UseTape(Path(path), record, options, strict=strict)
