"""What is masked because somebody asked for it: variables by their names, patterns of bytes."""

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
    """What is masked because somebody asked for it: variables, and matches of patterns."""

    names: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()

    @classmethod
    def read(cls, mask: Sequence[str]) -> Masks:
        """Return what `mask` asks for.

        Raises:
            UsageError: an entry is neither the name of a variable nor `re:` with a pattern.
        """
        if isinstance(mask, str):
            raise UsageError(f"tracefork: mask takes a list of names: mask=[{mask!r}].")
        patterns = [_pattern(entry) for entry in mask if entry.startswith(_PATTERN)]
        names = [entry for entry in mask if not entry.startswith(_PATTERN)]
        for name in names:
            if not _NAME.fullmatch(name):
                # It is not repeated: it may be the secret.
                raise UsageError(
                    "tracefork: mask (--mask) takes the name of an environment variable, or re: "
                    "and a regular expression; never the secret itself."
                )
            if 0 < len(os.environ.get(name, "").strip()) < _SHORTEST_NAMED:
                raise UsageError(
                    f"tracefork: the value of {name} is too short to be masked: it would be found "
                    f"in any text. {_SHORTEST_NAMED} characters are the least."
                )
        return cls(tuple(sorted(set(names))), tuple(patterns))

    def described(self) -> list[str]:
        """Return what the tape says about them: no pattern's text, which may hold a secret."""
        numbered = [f"{_PATTERN}{number}" for number in range(1, len(self.patterns) + 1)]
        return [*self.names, *numbered, VERSION]

    def as_on(self, environment: Environment | None) -> Masks:
        """Return these masks with the names that a tape was recorded with.

        Raises:
            UsageError: the tape was recorded with another number of patterns.
        """
        wanted = patterns_on(environment)
        if wanted != len(self.patterns):
            raise UsageError(
                f"tracefork: the tape was recorded with {wanted} pattern(s) to mask, and "
                f"{len(self.patterns)} are given. Give the same ones in the same order "
                "(mask=[…], --mask re:…): a tape holds their number alone."
            )
        return self.named_on(environment)

    def named_on(self, environment: Environment | None) -> Masks:
        """Return these masks with the names that a tape was recorded with; patterns stay."""
        described = environment.masks if environment else []
        names = {entry for entry in described if _NAME.fullmatch(entry)}
        return Masks(tuple(sorted(names.union(self.names))), self.patterns)

    def values_in(self, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the name and the value of each variable that is named, where it has one."""
        for name in self.names:
            value = environment.get(name, "").strip()
            if len(value) >= _SHORTEST_NAMED:
                yield name, value


def patterns_on(environment: Environment | None) -> int:
    """Return how many patterns a tape was recorded with."""
    return sum(entry.startswith(_PATTERN) for entry in (environment.masks if environment else []))


def _pattern(entry: str) -> re.Pattern[bytes]:
    text = entry.removeprefix(_PATTERN)
    try:
        pattern = re.compile(text.encode())
    except re.error as error:
        raise UsageError(f"tracefork: {text!r} is no regular expression: {error}.") from error
    if pattern.match(b""):
        raise UsageError(f"tracefork: the pattern {text!r} matches the empty text: it masks all.")
    return pattern
