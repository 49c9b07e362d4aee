"""Every error that tracefork raises on purpose.

    TraceforkError
    ├── DivergenceError     the agent asked for something the tape does not hold  exit 1
    ├── UsageError          a path, name or option cannot work                    exit 2
    ├── ReplayError         the tape cannot answer: cut off, or not replayable    exit 3
    ├── EgressError         a connection was attempted that no seam captures      exit 4
    │   └── WriteError      a fork would repeat a call that has side effects      exit 4
    ├── TapeError           the file is not a tape, or is corrupt                 exit 5
    │   └── UnwritableError the tape cannot be written: the disk is full, say     exit 5
    ├── StoppedError        a fork reached the point where it ends                ends its block
    └── BoundaryError       the agent used randomness that is not on the tape     exit 7

They are RuntimeErrors because the retry policies of several frameworks, LangGraph's default among
them, do not retry a RuntimeError: a divergence is final.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_core.printable import printable


class TraceforkError(RuntimeError):
    """Base of every error raised on purpose. The command exits with `exit_code`."""

    exit_code = 6

    def __str__(self) -> str:
        """Return the text so that it may be printed: Python prints it as it is."""
        return printable(super().__str__(), lines=True)


class UsageError(TraceforkError):
    """A path, a name or an option cannot work as given."""

    exit_code = 2


class ReplayError(TraceforkError):
    """The tape cannot answer: it was cut off, or it holds something that cannot be replayed."""

    exit_code = 3


class StoppedError(TraceforkError):
    """A fork reached the point where it ends. It ends the `with` block and does not leave it."""


class EgressError(TraceforkError):
    """The process attempted a connection, or started a program, that no seam captures."""

    exit_code = 4


class WriteError(EgressError):
    """A fork reached a live call that may repeat a side effect, and such calls are not allowed."""


class ToolError(Exception):
    """A replayed tool failed when it was recorded, with an exception that cannot be rebuilt.

    It is no `TraceforkError`: the failure is the tool's, and the agent handles it.

    Attributes:
        kind: the class name of the recorded exception.
        message: its text.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(f"{kind}: {message}" if message else kind)

    def __reduce__(self) -> tuple[type[ToolError], tuple[str, str]]:
        return type(self), (self.kind, self.message)


class TapeError(TraceforkError):
    """The file is not a tape, is corrupt, or cannot be written."""

    exit_code = 5


class UnwritableError(TapeError):
    """The disk is full, gone or read-only. The run itself is fine; only its tape is not written."""


class BoundaryError(TraceforkError):
    """The agent used a clock or randomness that is not on the tape (`boundary="raise"`)."""

    exit_code = 7


class BoundaryWarning(UserWarning):
    """The agent used a clock or randomness that is not on the tape (`boundary="warn"`)."""


class SurroundingsWarning(UserWarning):
    """The agent read a file or variable that has another value than when this was recorded."""

    def __str__(self) -> str:
        return printable(super().__str__())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recorded exchange that is similar to the request, and why it was not the answer."""

    n: int
    reason: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """What differed, where, and what was closest: the content of a divergence card.

    Attributes:
        n: the number of the recorded exchange that was due or came nearest; None if the tape has no
            more.
        of: how many exchanges the tape holds.
        replayed: how many of them were replayed before.
        pointer: an RFC 6901 JSON pointer into the request body, or `url`, `method`,
            `headers/<name>`, `body`.
        recorded, actual: the two values there, short and printable.
        hints: what may have caused the difference, one line each.
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
    replayed: int = 0

    @property
    def where(self) -> str:
        """Return "after 2 of 7 exchanges · step agent ▸ model · agent.py:41"."""
        counted = f"{self.of} exchange{'' if self.of == 1 else 's'}"
        step = f"step {self.step}" if self.step else None
        parts = (f"after {self.replayed} of {counted}", step, self.caller)
        return " · ".join(part for part in parts if part)

    @property
    def commands(self) -> dict[str, str]:
        """Return what to type next in Python, most useful first."""
        at = f" {self.n}" if self.n is not None else ""
        return {
            "rerun": f'tracefork_core.rerun("{self.tape}") asks only for what differs',
            "see": f"tracefork show {self.tape}{at}",
        }


class DivergenceError(TraceforkError):
    """The agent asked for something else than the tape holds. `divergence` says what and where."""

    exit_code = 1

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence
        super().__init__(self._text())

    def __str__(self) -> str:
        return self._text()

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
        lines.extend(f"  {verb}: {command}" for verb, command in d.commands.items())
        return "\n".join(map(printable, lines))


def again(error: TraceforkError) -> TraceforkError:
    """Return a copy of an error, to raise it in another place.

    One instance raised by several threads would mix up their tracebacks and contexts.
    """
    if isinstance(error, DivergenceError):
        return DivergenceError(error.divergence)
    return type(error)(*error.args)
