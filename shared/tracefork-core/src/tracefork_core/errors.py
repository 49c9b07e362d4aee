"""Every error tracefork raises on purpose.

    TraceforkError
    ├── UsageError          a path, name or option that cannot work              exit 2
    ├── DivergenceError     the agent asked for something the tape does not hold exit 1
    ├── ReplayError         the tape cannot answer (cut off, or not replayable)  exit 3
    ├── EgressError         bytes tried to leave by a door no seam watches       exit 4
    │   └── WriteError      a fork would change the world a second time          exit 4
    ├── TapeError           the file is not a tape, or is damaged                exit 5
    │   └── UnwritableError it cannot be written: the disk is full               exit 5
    └── BoundaryError       the agent drew from a source that is not on the tape exit 7

The tree hangs under RuntimeError because retry policies of several frameworks (LangGraph's
default among them) do not retry RuntimeErrors: a divergence is final.
"""

from __future__ import annotations

from dataclasses import dataclass


class TraceforkError(RuntimeError):
    """Base of every error raised on purpose; `exit_code` is what the CLI exits with."""

    exit_code = 6


class UsageError(TraceforkError):
    """A path, a name or an option that cannot work as given."""

    exit_code = 2


class ReplayError(TraceforkError):
    """The tape cannot answer: it was cut off, or holds something that cannot be replayed."""

    exit_code = 3


class StoppedError(TraceforkError):
    """A fork has come to where it was to end. Ends its block, and is not raised from it."""


class EgressError(TraceforkError):
    """Something tried to leave the process by a door that no seam watches."""

    exit_code = 4


class WriteError(EgressError):
    """A fork came to an exchange that may change the world a second time."""


class ToolError(Exception):
    """A tool of the agent's failed with an exception that a tape cannot bring back as what it was.

    `kind` is the name of its class, `message` what it said. No `TraceforkError`: it is the tool's
    failure, for the agent to handle.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(f"{kind}: {message}" if message else kind)

    def __reduce__(self) -> tuple[type[ToolError], tuple[str, str]]:
        return type(self), (self.kind, self.message)


class TapeError(TraceforkError):
    """The file is not a tape, is damaged, or cannot be written."""

    exit_code = 5


class UnwritableError(TapeError):
    """The disk takes no more: it is full, or gone, or says no. With a run nothing is wrong."""


class BoundaryError(TraceforkError):
    """The agent drew from a source that the tape does not hold (`boundary="raise"`)."""

    exit_code = 7


class BoundaryWarning(UserWarning):
    """The agent drew from a source that the tape does not hold (`boundary="warn"`)."""


class SurroundingsWarning(UserWarning):
    """The agent read something of its surroundings that was otherwise when this was recorded."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recorded exchange that came close, and why it was not the answer."""

    n: int
    reason: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """What differed, where, and what came closest: the content of a divergence card.

    `n` is the number of the recorded exchange that was due (None: the tape has no more), `of` how
    many the tape holds. `pointer` is an RFC 6901 JSON pointer into the request body, or `url`,
    `method`, `headers/<name>`, `body`; `recorded` and `actual` are short printable values. `hints`
    are what may have made the difference, one line each.
    """

    kind: str
    summary: str
    tape: str
    of: int
    n: int | None = None
    step: str | None = None
    caller: str | None = None
    request: str | None = None
    pointer: str | None = None
    recorded: str | None = None
    actual: str | None = None
    candidates: tuple[Candidate, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Return "exchange 3 of 7 · agent ▸ model · agent.py:41"."""
        number = (
            f"exchange {self.n} of {self.of}" if self.n is not None else "after the last exchange"
        )
        return " · ".join(part for part in (number, self.step, self.caller) if part)

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands that look further, most useful first."""
        at = f" {self.n}" if self.n is not None else ""
        return (f"tracefork show {self.tape}{at}", f"tracefork record -o {self.tape} --overwrite …")


class DivergenceError(TraceforkError):
    """The agent left the tape; `.divergence` says where and how."""

    exit_code = 1

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence
        super().__init__(self._text())

    def __reduce__(self) -> tuple[type[DivergenceError], tuple[Divergence]]:
        return type(self), (self.divergence,)

    def _text(self) -> str:
        d = self.divergence
        lines = [f"tracefork: {d.summary} ({d.where})"]
        if d.request:
            lines.append(f"  {d.request}")
        if d.pointer:
            lines.append(f"  {d.pointer}")
            lines.append(f"    recorded  {d.recorded}")
            lines.append(f"    now       {d.actual}")
        lines.extend(f"    perhaps   {hint}" for hint in d.hints)
        lines.extend(
            f"  nearest: #{candidate.n} ({candidate.reason})" for candidate in d.candidates
        )
        lines.extend(f"  see: {command}" for command in d.commands)
        return "\n".join(lines)


def again(error: TraceforkError) -> TraceforkError:
    """Return a fresh copy of an error, to be raised from wherever it is met again.

    One instance raised by several threads would tangle their tracebacks and contexts.
    """
    if isinstance(error, DivergenceError):
        return DivergenceError(error.divergence)
    return type(error)(*error.args)
