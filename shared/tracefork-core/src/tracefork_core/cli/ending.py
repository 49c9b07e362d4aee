"""How an agent ended: what Python would print about it, and the status it would exit with."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType

DIFFERENT, FAILED = 1, 3
"""The exit codes of a replay that went another way, and of one that failed."""
_OURS = "tracefork_core."


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an agent; `error` is None where it ran to its end or asked to exit with 0."""

    status: int
    error: BaseException | None = None

    @classmethod
    def of(cls, error: BaseException) -> Ending:
        """Return the ending that an exception makes."""
        if isinstance(error, KeyboardInterrupt):
            return cls(130, error)
        if not isinstance(error, SystemExit):
            return cls(1, error)
        code = error.code
        status = 0 if code is None else code & 0xFF if isinstance(code, int) else 1
        return cls(status, error if status else None)

    @property
    def outcome(self) -> str:
        """What a receipt calls it: "ok", or the name of the exception's class."""
        return "ok" if self.error is None else type(self.error).__name__

    def show(self) -> None:
        """Print what Python prints when a program ends like this."""
        error = self.error
        if isinstance(error, SystemExit):
            if not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
        elif error is not None:
            own = error.with_traceback(_from_the_agent(error.__traceback__))
            sys.excepthook(type(own), own, own.__traceback__)


def failure(
    outcome: str, status: int, asked: int, exchanges: int, recorded: str | None
) -> tuple[int, str] | None:
    """Return exit code and reason, where an agent did not end as it did when it was recorded.

    Args:
        outcome: how it ended now, as a receipt calls it.
        status: what it would exit with.
        asked: how many exchanges it asked for.
        exchanges: how many were recorded.
        recorded: how it ended then, None where the recording was cut off.
    """
    if status == 130 or outcome not in ("ok", recorded):
        return FAILED, f"the agent failed by itself with {outcome}"
    if asked != exchanges:
        return FAILED, f"the agent failed with {outcome} before it asked for everything"
    if recorded is not None and outcome != recorded:
        return DIFFERENT, f"the agent ended well now; when recorded it ended with {recorded}"
    return None


def _from_the_agent(traceback: TracebackType | None) -> TracebackType | None:
    """Leave out the frames that called the agent: Python would not have them."""
    while traceback and traceback.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        traceback = traceback.tb_next
    return traceback
