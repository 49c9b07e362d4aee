"""The event that says where an imported tape comes from, and how much of the run it holds."""

from __future__ import annotations

from typing import Literal

import msgspec

IMPORTED = "imported"

Grade = Literal["proven", "unproven", "content", "structure"]
"""How much of a run an import holds, from the most to the least.

proven     each request and response as bytes: replays, and requests are compared whole
unproven   each response as bytes, but not all that was compared of the requests: replays
content    messages and results, but no bytes: does not replay
structure  which calls there were, and the content of some at most: does not replay
"""

GRADES: dict[Grade, str] = {
    "proven": "replayable (bodies proven)",
    "unproven": "replayable without proof of the request",
    "content": "structure and content",
    "structure": "structure",
}


UNKNOWN = "unknown"
"""The outcome of an imported run whose file does not say how it ended."""


class Blamed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The exchange that people blamed a failed run on, as the imported file says."""

    exchange: int
    agent: str | None = None
    reason: str | None = None


def _requests(count: int) -> str:
    return f"{count} request{'' if count == 1 else 's'}"


class Imported(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a tape was imported from.

    Attributes:
        format: the name of the format: "VCR cassette".
        file: the name of the file.
        sha256: the hash of the file.
        grade: the lowest grade of an exchange.
        missing: what the file does not hold, as sentences.
        lower: the exchanges of a grade below "proven", by grade.
        not_compared: "headers": what a replay compares only as far as it is there, because the
            file does not tell what was removed from it.
        json_bodies: the exchanges whose request bodies a replay compares as JSON values.
        unknown_bodies: those whose request bodies it does not compare.
        blamed: what the file blames a failed run on.
    """

    format: str
    file: str
    sha256: str
    grade: Grade
    missing: list[str] = []
    lower: dict[str, list[int]] = {}
    not_compared: list[str] = []
    json_bodies: list[int] = []
    unknown_bodies: list[int] = []
    blamed: Blamed | None = None

    def grade_of(self, n: int) -> Grade:
        """Return the grade of one exchange."""
        found = (grade for grade in GRADES if n in self.lower.get(grade, ()))
        return next(found, "proven")

    @property
    def not_proven(self) -> list[str]:
        """What a replay does not prove about the requests, in words."""
        values, unknown = len(self.json_bodies), len(self.unknown_bodies)
        words = ["the order of requests"] if self.replays else []
        words += ["request headers"] if "headers" in self.not_compared else []
        words += [f"the bytes of {_requests(values)}"] if values else []
        return [*words, *([f"the body of {_requests(unknown)}"] if unknown else [])]

    @property
    def replays(self) -> bool:
        """Whether the tape holds the bytes that a replay needs."""
        return self.grade in ("proven", "unproven")
