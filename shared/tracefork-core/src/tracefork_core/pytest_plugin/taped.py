"""The tape of one test: opened before its fixtures, closed after them, and what becomes of it."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from tracefork_core.errors import TraceforkError, again
from tracefork_core.masking.redactor import placeholder
from tracefork_core.pytest_plugin import keys
from tracefork_core.run.replay import Replaying
from tracefork_core.run.use_tape import TapeMode, TapeOfTest
from tracefork_core.tape import Tape
from tracefork_core.tape.rewrite import rewrite

if TYPE_CHECKING:
    from tracefork_core.pytest_plugin.outcome import Outcome
    from tracefork_core.run.fork import Forking
    from tracefork_core.run.record import Recording


class Taped(TapeOfTest):
    """A tape under pytest. What it records goes to `outcome`: kept, waiting, or an artifact.

    Args:
        path: the tape.
        mode: what the mark or the settings ask for.
        options: of the blocks.
        outcome: collects what is told at the end.
        strict: as for `replay`.
        began: when this run of tests began.
        is_sample: whether a failed run counts as well as one that passed, so its tape is kept.
    """

    def __init__(
        self,
        path: Path,
        mode: TapeMode | None,
        options: dict[str, Any],
        outcome: Outcome,
        *,
        strict: bool = False,
        began: float | None = None,
        is_sample: bool = False,
    ) -> None:
        super().__init__(path, mode, {"scope": "process", **options}, strict=strict, began=began)
        self._outcome = outcome
        self._error: BaseException | None = None
        self._is_told = False
        self._is_sample = is_sample
        self._readers = ExitStack()
        self.skipped = False

    def so_far(self) -> Tape:
        """Return the tape as far as it is written; it can be read until the test has ended."""
        path = self.path
        if self._scope is not None:
            assert self.run is not None
            path = self.run.tape.path if isinstance(self.run, Replaying) else self.run.path
        return self._readers.enter_context(Tape.open(path))

    def __enter__(self) -> Recording | Replaying | Forking:
        run = super().__enter__()
        if isinstance(run, Replaying):
            self._lend(keys.secrets_on(run.tape))
        return run

    def _lend(self, names: set[str]) -> None:
        """Set the keys that are missing to placeholders: child processes read them for themselves.

        They stay until the tape is closed.
        """
        for name in names.difference(os.environ):  # A look-up would find the placeholder.
            os.environ[name] = placeholder(name)
            self._readers.callback(os.environ.pop, name, None)

    @property
    def is_open(self) -> bool:
        """Whether the test runs."""
        return self._scope is not None

    @property
    def scope(self) -> Any:
        """The block that is open."""
        return self._scope

    def note(self, error: BaseException) -> None:
        """Note that the test, or a fixture of its own, raised an error."""
        self._error = self._error or error
        self.skipped = self.skipped or isinstance(error, pytest.skip.Exception)

    def failed(self, error: BaseException) -> None:
        """Note that the test raised an error; raise what ended its run, if that was ours.

        Raises:
            TraceforkError: what the agent asked for, say, is not on the tape.
        """
        __tracebackhide__ = True
        self.note(error)
        if self._scope is not None and (first := self._scope.first_error) is not None:
            self._is_told = True
            raise again(first) from None

    def close(self) -> None:
        """End the run if it is open.

        Raises:
            TraceforkError: it was another run than the recorded one, and no error said so yet.
        """
        __tracebackhide__ = True
        error = self._error
        try:
            self.__exit__(type(error) if error else None, error, None)
        except TraceforkError:
            if not self._is_told:
                raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True
        self._readers.close()  # A tape that is read cannot be closed as one file.
        return super().__exit__(kind, error, traceback)

    def keep(self, new: Path) -> None:
        """Put a tape into its place, or let it wait until its changes were shown."""
        if not self._outcome.updates:
            is_first = not self.path.exists()
            super().keep(new)
            self._outcome.add("recorded", self.path, is_first=is_first)
            return
        from tracefork_core.pytest_plugin.changes import changes  # Loaded here: it takes long.

        with Tape.open(new) as now:
            lines = changes(self.path, now)
        if lines:
            self._outcome.add("waiting", self.path, self._put_aside(new), lines)
        else:
            new.unlink()

    def refuse(self, new: Path) -> None:
        """Keep the tape of a failed test aside; a skipped test has none."""
        if self.skipped:
            new.unlink()
        elif self._is_sample and isinstance(self._error, Exception) and not self._is_told:
            self.keep(new)
        else:
            self._outcome.add("failed", self.path, self._put_aside(new))

    def differs(self, branch: Path) -> None:
        """Keep what was run again aside, as one file, or let it wait to replace the tape."""
        from tracefork_core.pytest_plugin.changes import changes_of_branch

        target = self._outcome.aside(self.path)
        with Tape.open(branch) as opened:
            lines = changes_of_branch(opened)
            rewrite(opened, target)
        branch.unlink()
        kind = "waiting" if self._outcome.updates else "differs"
        self._outcome.add(kind, self.path, target, lines)

    def _put_aside(self, new: Path) -> Path:
        target = self._outcome.aside(self.path)
        shutil.move(new, target)
        return target
