"""What the user asks to mask: environment variables by name, and regular expressions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracefork_core.errors import UsageError
from tracefork_core.masking.patterns import VERSION
from tracefork_core.tape.event import Environment

_PATTERN = "re:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Masks:
    """The environment variables and the patterns that a user asks to mask."""

    names: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()

    @classmethod
    def read(cls, mask: Sequence[str]) -> Masks:
        """Parse the option `mask`: names of variables, and `re:` with a pattern.

        Raises:
            UsageError: an entry is neither, or the variable's value is too short.
        """
        if isinstance(mask, str):
            raise UsageError(f"tracefork: mask takes a list of names: mask=[{mask!r}].")
        patterns = [_pattern(entry) for entry in mask if entry.startswith(_PATTERN)]
        names = [entry for entry in mask if not entry.startswith(_PATTERN)]
        for name in names:
            if not _NAME.fullmatch(name):
                # The message does not repeat the entry: it may be a secret.
                raise UsageError(
                    "tracefork: mask (--mask) takes the name of an environment variable, or "
                    "re:PATTERN with a regular expression. Do not pass the secret itself."
                )
            if 0 < len(os.environ.get(name, "").strip()) < _SHORTEST_NAMED:
                raise UsageError(
                    f"tracefork: the value of {name} is too short to mask: it would match "
                    f"unrelated text. It must have at least {_SHORTEST_NAMED} characters."
                )
        return cls(tuple(sorted(set(names))), tuple(patterns))

    def described(self) -> list[str]:
        """Return names and numbered patterns for the tape: a pattern's text may be secret."""
        numbered = [f"{_PATTERN}{number}" for number in range(1, len(self.patterns) + 1)]
        return [*self.names, *numbered, VERSION]

    def as_on(self, environment: Environment | None) -> Masks:
        """Return these masks, plus the names that a tape was recorded with, for its replay.

        Raises:
            UsageError: the tape was recorded with another number of patterns.
        """
        wanted = patterns_on(environment)
        if wanted != len(self.patterns):
            raise UsageError(
                f"tracefork: the tape was recorded with {wanted} pattern(s) to mask, but "
                f"{len(self.patterns)} are given. Pass the same patterns in the same order "
                "(mask=[…], --mask re:…); a tape stores only their number."
            )
        return self.named_on(environment)

    def named_on(self, environment: Environment | None) -> Masks:
        """Return these masks, plus the names that a tape was recorded with."""
        described = environment.masks if environment else []
        names = {entry for entry in described if _NAME.fullmatch(entry)}
        return Masks(tuple(sorted(names.union(self.names))), self.patterns)

    def values_in(self, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield name and value of each named variable that is set to a maskable value."""
        for name in self.names:
            value = environment.get(name, "").strip()
            if len(value) >= _SHORTEST_NAMED:
                yield name, value


def patterns_on(environment: Environment | None) -> int:
    """Return the number of patterns that a tape was recorded with."""
    return sum(entry.startswith(_PATTERN) for entry in (environment.masks if environment else []))


def _pattern(entry: str) -> re.Pattern[bytes]:
    text = entry.removeprefix(_PATTERN)
    try:
        pattern = re.compile(text.encode())
    except re.error as error:
        raise UsageError(
            f"tracefork: {text!r} is not a valid regular expression: {error}."
        ) from error
    if pattern.match(b""):
        raise UsageError(
            f"tracefork: the pattern {text!r} matches empty text, so it would mask everything."
        )
    return pattern
