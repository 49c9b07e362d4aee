"""Where child processes write down what they tried: one JSON line each, read by the parent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Line:
    """One thing a child process did."""

    strays: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    refused: str | None = None
    crossed: int = 0


class Report:
    """A file that several processes append to. Lines are short enough to be written whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self,
        *,
        strays: list[str] | None = None,
        programs: list[str] | None = None,
        refused: str | None = None,
        crossed: int = 0,
    ) -> None:
        """Append one line."""
        line = {
            "strays": strays or [],
            "programs": programs or [],
            "refused": refused,
            "crossed": crossed,
        }
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")

    def read(self) -> list[Line]:
        """Return the lines written so far, and remove the file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        self.path.unlink()
        return list(_lines(data))


def _lines(data: bytes) -> Iterator[Line]:
    for line in data.splitlines():
        try:
            yield Line(**json.loads(line))
        except (ValueError, TypeError):
            # A child that was killed while it wrote: something happened, what is not known.
            yield Line(programs=["?"])
