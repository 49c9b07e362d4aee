"""Record a test the first time it runs, and replay it from then on; the modes of a test's tape.

A recording counts once its block has ended without an error. Until then it has another name, so
that a failed first run leaves no tape, and a failed renewal leaves the one before.

Here is decided what a mode does, for `use_tape` and for the pytest plugin: both make a
`TapeOfTest`. Two processes may run the same test, or the same fixture in two workers: a lock lets
one of them record, and the other replays what that one recorded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, get_args

from tracefork_core.errors import DivergenceError, UsageError
from tracefork_core.explaining import divergence
from tracefork_core.run.only_writer import only_writer
from tracefork_core.run.record import Recording, record
from tracefork_core.run.replay import Replaying, replay
from tracefork_core.run.scope import Scope
from tracefork_core.tape import Tape
from tracefork_core.tape.rewrite import rewrite

if TYPE_CHECKING:
    from tracefork_core.run.fork import Forking

TapeMode = Literal["none", "once", "new", "rewrite", "rerun"]
"""What a test does with its tape.

`none` replays it. `once` records it if it does not exist. `new` does that too, and asks live for
what a run asks in addition. `rewrite` records it again. `rerun` asks live for all that differs,
onto a branch, and leaves the tape as it is.
"""

VARIABLE = "TRACEFORK_TAPE_MODE"
"""The environment variable that sets the mode of all tapes of a run of tests."""

used: set[str] = set()
"""The tapes that blocks of this process were entered with."""

_NO = ("", "0", "false")
_REPLAYED = frozenset({"ambient", "mask", "scope", "allow", "match"})
_RECORDED = frozenset({"ambient", "mask", "scope", "tools"})
_RERUN = frozenset({"ambient", "mask", "scope", "writes", "reads"})


class TapeOfTest:
    """A block, sync or async, that is recorded, replayed or run again, as its mode says.

    Subclasses say what becomes of what was recorded: see `keep`, `refuse` and `differs`.

    Attributes:
        path: where the tape is, or will be.
        run: what runs, while the block is open and after.

    Args:
        path: the tape.
        mode: what to do, unless the environment variable says something else.
        options: keyword arguments of `record`, `replay` and `rerun`; each gets those it has.
        strict: as for `replay`.
        began: a tape that was written after this time, in seconds since 1970, is of this run of
            tests: `rewrite` does not record it again, but replays it.
    """

    def __init__(
        self,
        path: Path,
        mode: TapeMode | None,
        options: dict[str, Any],
        *,
        strict: bool = False,
        began: float | None = None,
    ) -> None:
        self.path = path
        self.run: Recording | Replaying | Forking | None = None
        self._given = mode
        self._options = options
        self._strict = strict
        self._began = began
        self._mode: TapeMode = "none"
        self._new: Path | None = None
        self._scope: Scope[Any] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Recording | Replaying | Forking:
        if self._scope is not None:
            raise UsageError("tracefork: this block is open already; make another for each run.")
        self._mode, self._new = mode_of(self._given), None
        used.add(str(self.path.absolute()))
        with ExitStack() as stack:
            scope = self._chosen(stack)
            self.run = scope.__enter__()
            self._stack = stack.pop_all()
        self._scope = scope
        return self.run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True
        scope, self._scope = self._scope, None
        if scope is None:
            return False
        is_whole = False
        with self._stack:
            try:
                is_handled = scope.__exit__(kind, error, traceback)
                is_whole = error is None
            finally:
                self._settle(is_whole)
        return is_handled

    async def __aenter__(self) -> Recording | Replaying | Forking:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True
        return self.__exit__(kind, error, traceback)

    def keep(self, new: Path) -> None:
        """Put a tape of a run without an error, which lies at `new`, into its place."""
        new.replace(self.path)

    def refuse(self, new: Path) -> None:
        """Remove the tape of a run that failed."""
        new.unlink(missing_ok=True)

    def differs(self, branch: Path) -> None:
        """Take the branch of a run that differs from the tape, in mode `rerun`."""
        number, name = 1, self.path.with_suffix(f".rerun{self.path.suffix}")
        while name.exists():
            number += 1
            name = self.path.with_suffix(f".rerun-{number}{self.path.suffix}")
        branch.rename(name)

    def _chosen(self, stack: ExitStack) -> Scope[Any]:
        """Return the block that the mode asks for; `stack` holds the lock of one that writes."""
        mode = self._mode
        exists = self.path.exists()
        if mode == "none" or (exists and (mode == "once" or (mode == "new" and _is_unasked()))):
            return self._replay()
        self._check_may_record()
        if mode == "rerun":
            return self._rerun()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(only_writer(self.path))
        if self.path.exists():  # Maybe made by another process, while this one waited.
            if mode == "once" or (mode == "rewrite" and self._is_of_this_run()):
                stack.close()
                return self._replay()
            if mode == "new":
                return self._rerun()
        self._new = self._beside("new")
        return record(self._new, overwrite=True, **self._those(_RECORDED))

    def _replay(self) -> Scope[Any]:
        return replay(self._existing(), strict=self._strict, **self._those(_REPLAYED))

    def _rerun(self) -> Scope[Any]:
        from tracefork_core.run.rerun import rerun  # Loaded here: most runs are replays.

        self._new = self._beside("rerun")
        return rerun(
            self._existing(),
            rerun_tools=True,  # Each replay of a test runs them too.
            to=self._new,
            overwrite=True,
            **self._those(_RERUN),
        )

    def _settle(self, is_whole: bool) -> None:
        """Decide what becomes of the tape that this run has written, if it has."""
        __tracebackhide__ = True
        new, self._new = self._new, None
        if new is None or not new.exists():
            return
        if not isinstance(self.run, Recording):
            self._settle_branch(new, is_whole)
        elif is_whole:
            self.keep(new)
        else:
            self.refuse(new)

    def _settle_branch(self, branch: Path, is_whole: bool) -> None:
        __tracebackhide__ = True
        from tracefork_core.run.fork import Forking
        from tracefork_core.run.rerun_changes import not_answered

        run = self.run
        assert isinstance(run, Forking)
        with Tape.open(branch) as opened:
            left = not_answered(opened)
            if is_whole and self._mode == "rerun" and (run.live or left):
                opened.close()
                self.differs(branch)
                return
            if run.live:
                self._settle_addition(opened, is_whole=is_whole and not left)
            branch.unlink()
            if left and is_whole:
                assert opened.parent is not None
                raise DivergenceError(divergence.left_over(opened.parent, left))

    def _settle_addition(self, branch: Tape, *, is_whole: bool) -> None:
        """Make one tape of a branch and what it shares with its parent."""
        packed = self._beside("new")
        packed.unlink(missing_ok=True)
        rewrite(branch, packed)
        if is_whole:
            self.keep(packed)
        else:
            self.refuse(packed)

    def _those(self, names: frozenset[str]) -> dict[str, Any]:
        return {name: value for name, value in self._options.items() if name in names}

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}.{what}")

    def _is_of_this_run(self) -> bool:
        return self._began is not None and self.path.stat().st_mtime >= self._began

    def _existing(self) -> Path:
        if self.path.exists():
            return self.path
        raise UsageError(
            f"tracefork: there is no tape {self.path}, and none is recorded here. Record it: set "
            f"{VARIABLE}=once, or type pytest --tape-mode=once."
        )

    def _check_may_record(self) -> None:
        """Refuse to ask live on a build server: a person has to look at a new tape."""
        if not _is_unasked():
            return
        asked = self._mode in ("rewrite", "rerun")
        lacks = "a new tape is asked for:" if asked else "there is no tape"
        raise UsageError(
            f"tracefork: {lacks} {self.path}, and tests on a build server (CI is set) record "
            f"nothing by themselves. Run the test on your machine and commit the tape, or set "
            f"{VARIABLE}={self._mode}."
        )


def _is_unasked() -> bool:
    """Return whether this is a build server on which no mode was set."""
    return not os.environ.get(VARIABLE) and os.environ.get("CI", "").lower() not in _NO


def mode_of(given: str | None) -> TapeMode:
    """Return the mode that the environment sets, else the given one, else "once".

    Raises:
        UsageError: there is no such mode.
    """
    said = os.environ.get(VARIABLE) or given or "once"
    for mode in get_args(TapeMode):
        if said == mode:
            return mode  # type: ignore[no-any-return]
    modes = ", ".join(get_args(TapeMode)[:-1])
    raise UsageError(
        f"tracefork: the mode of a tape ({VARIABLE}, --tape-mode) must be {modes} or "
        f"{get_args(TapeMode)[-1]} (got {said!r})."
    )


def use_tape(
    path: str | Path,
    *,
    mode: TapeMode | None = None,
    ambient: bool = True,
    mask: Sequence[str] = (),
    strict: bool = False,
) -> TapeOfTest:
    """Record what runs inside if there is no such tape, and replay it if there is: for tests.

        with use_tape("tapes/refund.tape"):
            assert agent.run_sync("Refund order 7.").output == "Done."

    It is a sync or async `with`. If the block raises an error, a recording is not kept. On a build
    server (the variable `CI` is set) nothing is recorded, unless TRACEFORK_TAPE_MODE says so.

    Args:
        path: the tape. Its folder is made.
        mode: "none" replays; "once", the default, records where there is no tape; "new" also asks
            live for what is asked in addition, and adds it; "rewrite" records again; "rerun" asks
            live for all that differs, and leaves that as a branch beside the tape. The environment
            variable TRACEFORK_TAPE_MODE has precedence.
        ambient: as for `tracefork.record`.
        mask: as for `tracefork.record`.
        strict: as for `tracefork.replay`.

    Raises:
        UsageError: there is no tape, and none is recorded here; no such mode.
        DivergenceError: the run asked for something else than the tape holds, for more, or for
            less.
    """
    return TapeOfTest(Path(path), mode, {"ambient": ambient, "mask": mask}, strict=strict)
