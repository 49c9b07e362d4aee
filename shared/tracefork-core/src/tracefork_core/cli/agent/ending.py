"""How an agent ended: the exit status, and what Python would print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from tracefork_core.cli.exits import DIFFERENT, FAILED, INTERRUPTED
from tracefork_core.errors import TraceforkError
from tracefork_core.patching.code_swap import is_redirection
from tracefork_core.seams.failures import STATUS

_OURS = "tracefork_core."
_OUR_WORDS = "tracefork: "


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an agent; `error` is None if it finished or exited with 0."""

    status: int
    error: BaseException | None = None

    @classmethod
    def of(cls, error: BaseException) -> Ending:
        """Return the ending of an agent that raised `error`."""
        if isinstance(error, KeyboardInterrupt):
            return cls(INTERRUPTED, error)
        from tracefork_core.run.writing import exit_status

        status = exit_status(error)
        if status is None:
            return cls(1, error)
        return cls(status, error if status else None)

    @property
    def outcome(self) -> str:
        """The outcome in the receipt: "ok", or the name of the exception's class."""
        return "ok" if self.error is None else type(self.error).__name__

    @property
    def is_ours(self) -> bool:
        """Whether the error is one of tracefork's, or was caused by one."""
        error, seen = self.error, set[int]()
        while error is not None and id(error) not in seen:
            if isinstance(error, TraceforkError) or _is_refusal(error):
                return True
            seen.add(id(error))
            error = error.__cause__ or error.__context__
        return False

    def reported(self, *, show: bool) -> Ending:
        """Report the error as Python does, through `sys.excepthook`, and return the ending.

        A hook of the agent is part of its run, so it is called in any case. `show` tells whether to
        print what Python itself would print. An error of tracefork's is left to the command. The
        ending is another one if the hook exits.
        """
        error = self.error
        if error is None or self.is_ours:
            return self
        if isinstance(error, SystemExit) or (not show and _prints_only()):
            if show:
                self.show()
            return self
        leave_us_out(error)
        sys.last_type, sys.last_value = type(error), error
        sys.last_traceback = error.__traceback__
        sys.last_exc = error  # type: ignore[attr-defined]  # Python 3.12 sets it, too.
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit as exit_:
            return Ending.of(exit_).reported(show=show)
        except BaseException as failure:  # noqa: BLE001 - Python prints any
            if not Ending.of(failure).is_ours:
                leave_us_out(failure)
                print("Error in sys.excepthook:", file=sys.stderr)
                sys.__excepthook__(type(failure), failure, failure.__traceback__)
                print("\nOriginal exception was:", file=sys.stderr)
                sys.__excepthook__(type(error), error, error.__traceback__)
        return self

    def show(self) -> None:
        """Print the error as Python would, unless a hook of the agent has reported it."""
        error = self.error
        if isinstance(error, SystemExit):
            if not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
        elif error is not None and (self.is_ours or _prints_only()):
            leave_us_out(error)
            sys.__excepthook__(type(error), error, error.__traceback__)

    @property
    def notes(self) -> list[str]:
        """The notes of the error that Python prints below its traceback."""
        if isinstance(self.error, SystemExit):
            return []
        return list(getattr(self.error, "__notes__", ()))

    def show_rest(self, shown: list[str]) -> None:
        """Print what the end of the session has added: an error of tracefork's, or notes."""
        if self.is_ours:
            self.show()
        for note in self.notes[len(shown) :] if not self.is_ours else ():
            print(note, file=sys.stderr)

    def forget_frames(self) -> None:
        """Let go of the frames that the error holds, and of the objects in them.

        Python does so as it ends. An error of tracefork's keeps its frames: it is shown later.
        """
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)
        if self.error is not None and not self.is_ours:
            for error in _with_causes(self.error, set()):
                error.__traceback__ = None


def failure(
    outcome: str,
    status: int,
    asked: int,
    exchanges: int,
    recorded: str | None,
    recorded_status: int | None = None,
) -> tuple[int, str] | None:
    """Return an exit code and a reason if an agent did not end as it did when it was recorded.

    Args:
        outcome: how it ended now, as in a receipt.
        status: its exit status now.
        asked: the number of exchanges that it requested now.
        exchanges: the number of recorded exchanges.
        recorded: how it ended when it was recorded; None if the recording was cut off.
        recorded_status: its exit status then, if it ended with a `SystemExit` and that is known.
    """
    as_recorded = outcome == recorded and asked == exchanges
    # A watchdog of the agent may interrupt every run: an interrupt as recorded is the same run.
    if status == INTERRUPTED and not as_recorded:
        return INTERRUPTED, "interrupted, so nothing is proven; the tape is unchanged"
    if outcome not in ("ok", recorded):
        return FAILED, f"the agent failed by itself with {outcome}"
    if asked != exchanges:
        how = "ended" if outcome == "ok" else f"failed with {outcome}"
        return FAILED, f"the agent {how} before it made every recorded request"
    if recorded is not None and outcome != recorded:
        return DIFFERENT, f"the agent succeeded, but ended with {recorded} when it was recorded"
    # An agent that was interrupted, or succeeded, has no recorded status; nor do older tapes.
    if recorded_status is not None and status != recorded_status:
        now_and_then = f"with {status}, and with {recorded_status} when it was recorded"
        return DIFFERENT, f"the agent exited {now_and_then}"
    return None


def _is_refusal(error: BaseException) -> bool:
    """Return whether an SDK raises our refusal of its request as an error of its own."""
    return getattr(error, "status_code", None) == STATUS and _OUR_WORDS in str(error)


def leave_us_out(error: BaseException) -> None:
    """Remove tracefork's frames from the tracebacks of an error and of its causes.

    These are the frames that called the agent and those of the seams. A run without tracefork would
    show neither.
    """
    for each in _with_causes(error, set()):
        each.__traceback__ = _of_others(each.__traceback__)


def _with_causes(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    seen.add(id(error))
    yield error
    inside = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *inside):
        if other is not None and id(other) not in seen:
            yield from _with_causes(other, seen)


def _prints_only() -> bool:
    """Return whether `sys.excepthook` is Python's own."""
    return sys.excepthook is sys.__excepthook__


def _of_others(traceback: TracebackType | None) -> TracebackType | None:
    links = []
    while traceback is not None:
        frame = traceback.tb_frame
        is_ours = frame.f_globals.get("__name__", "").startswith(_OURS)
        if not is_ours and not is_redirection(frame.f_code):
            links.append(traceback)
        traceback = traceback.tb_next
    for link, following in zip(links, [*links[1:], None], strict=False):
        link.tb_next = following
    return links[0] if links else None
