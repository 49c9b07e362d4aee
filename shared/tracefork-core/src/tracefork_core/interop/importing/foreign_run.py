"""A run as a file of another tool holds it: what readers return, and what goes onto a tape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracefork_core.exchange.contract import Failure, Head, Request
from tracefork_core.tape.imported import UNKNOWN, Blamed, Grade

_GRADES: tuple[Grade, ...] = ("proven", "unproven", "content", "structure")


@dataclass(slots=True)
class ForeignStep:
    """A step of the run. Times are nanoseconds since the epoch; `id` is unique within the run."""

    id: str
    kind: str
    name: str
    parent: str | None = None
    started: int = 0
    ended: int | None = None
    error: str | None = None
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class ForeignExchange:
    """A call of the run.

    Attributes:
        request: what was asked.
        head: the beginning of the response; None if none arrived.
        chunks: the body of the response, in the pieces that are known.
        failure: what ended it, if it failed.
        started: nanoseconds since the epoch, or 0 if the file has no times.
        first_byte, took: nanoseconds until the response began and ended.
        step: the id of the step that asked.
        grade: how much of it the file holds.
    """

    request: Request
    head: Head | None = None
    chunks: tuple[bytes, ...] = ()
    failure: Failure | None = None
    started: int = 0
    first_byte: int | None = None
    took: int | None = None
    step: str | None = None
    grade: Grade = "proven"


@dataclass(slots=True)
class ForeignRun:
    """What one file holds. Exchanges are in the order in which they were asked.

    `outcome` is "ok", the name of an error, or `UNKNOWN`.
    `missing`, `not_compared` and the lists of bodies are as in `tape.imported.Imported`.
    """

    format: str
    exchanges: list[ForeignExchange] = field(default_factory=list)
    steps: list[ForeignStep] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    json_bodies: list[int] = field(default_factory=list)
    unknown_bodies: list[int] = field(default_factory=list)
    blamed: Blamed | None = None
    outcome: str = UNKNOWN

    @property
    def grade(self) -> Grade:
        """The lowest grade of an exchange; "structure" if there is none."""
        return lowest(exchange.grade for exchange in self.exchanges)


def lowest(grades: Iterable[Grade]) -> Grade:
    """Return the grade that holds the least; "structure" if there are none."""
    return max(grades, key=_GRADES.index, default="structure")
