"""What a shrinking comes to."""

from __future__ import annotations

import msgspec


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """How far one kind of unit was shrunk.

    Attributes:
        kind: "model calls", "messages", "tools" or "lines".
        before: units of the recording.
        kept: units that are left.
        minimal: whether leaving out any one of those was tried, and did not fail.
        undecided: candidates that could not be graded, or that contradicted themselves.
    """

    kind: str
    before: int
    kept: int
    minimal: bool
    undecided: int = 0


class Shrinking(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a shrinking.

    Attributes:
        branch: the name of the smallest branch that fails; None if nothing could be left out.
        parts: how far each kind of unit was shrunk.
        forks: forks that were run, including those that grade the recording.
        calls: live calls.
        usd: cost of the live calls in dollars; None if a price is not known.
        seconds: duration.
        stopped: why the search ended early; None if it ended by itself.
        is_interrupted: whether Ctrl-C stopped it.
        doubt: why the result does not count as proven; None if it does.
        request: the smallest body that the live call was sent; None without live calls.
        reasons: why candidates could not be graded, each once.
    """

    branch: str | None
    parts: tuple[Shrunk, ...]
    forks: int
    calls: int
    usd: float | None
    seconds: float
    stopped: str | None = None
    is_interrupted: bool = False
    doubt: str | None = None
    request: str | None = None
    reasons: tuple[str, ...] = ()
