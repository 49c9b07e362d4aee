"""What a comparison finds: one difference, its kind, its place, and what was said on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracefork_core.providers.lenient import Json

Kind = Literal[
    "exact",
    "input differs",
    "output differs",
    "operation differs",
    "missing",
    "extra",
    "error differs",
]
"""How two exchanges of the same place differ.

Another question is an "input", another answer to the same question an "output", another tool or
URL an "operation". "missing" is only in the first run, "extra" only in the second.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an exchange that differs: "system prompt", "prompt", "tool result", "answer".

    `before` and `after` are JSON values, mostly texts; None where a run does not have the part.
    """

    name: str
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between two runs.

    Attributes:
        kind: what differs.
        first: the number of the exchange in the first run; None of an extra one.
        second: the number in the second run; None of a missing one.
        pointer: the first place that differs: a JSON pointer into the request, "url", or the part
            of the answer with a pointer into that ("call of search/query", "response/price").
        lane: the lane, by its name in the first run that has it.
        step: the names of the steps from the root down.
        operation: what was done: "chat", the name of a tool, "GET example.org/orders".
        sections: the parts that differ, with both values.
        count: how many exchanges in a row were moved, if that is what differs.
        is_moved: whether equal exchanges stand elsewhere in their lane: here in the first run, at
            `second` in the other.
    """

    kind: Kind
    first: int | None
    second: int | None
    pointer: str
    lane: str
    step: tuple[str, ...]
    operation: str
    sections: tuple[Section, ...] = ()
    count: int = 1
    is_moved: bool = False

    @property
    def place(self) -> int:
        """The number to show it by: that of the first run, or of an extra exchange its own."""
        return self.first if self.first is not None else self.second or 0
