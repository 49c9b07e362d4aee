"""Find secrets in what goes onto a tape, and put a placeholder in their place.

A placeholder holds the name of the secret and nothing of its value: who replays with another value
asks, once masked, for the same.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from tracefork_core.masking.names import secret_values
from tracefork_core.masking.patterns import LONGEST, tokens, unfinished
from tracefork_core.masking.spellings import Match, Spellings

PLACEHOLDER = "tracefork-secret-"
_PLACEHOLDERS = re.compile(rb"tracefork-secret-\w+")
_ODD = re.compile(r"[^A-Za-z0-9_]")
_TELLING = 4
"""Bytes at the end of a part that wait where a secret begins with them; fewer say little."""
_FAR = 64
_KEY = re.compile(r"(?<![A-Za-z0-9])keys?(?![A-Za-z0-9])", re.IGNORECASE)
_KEY_TO_SOMETHING = re.compile(
    r"(access|account|api|auth|encryption|license|master|private|secret|service|signing)"
    r"[-_. ]?keys?"
)
_CHANCE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")


def placeholder(name: str) -> str:
    """Return what stands on a tape in the place of a secret."""
    return PLACEHOLDER + _ODD.sub("_", name)


class Redactor:
    """Finds and replaces the secrets it was given; the same bytes always come out alike.

    Args:
        secrets: values by name. Of names that share a value the first in order counts.
        patterns: regular expressions whose matches are secrets too, called PATTERN_1, PATTERN_2 …
        tokens: whether tokens that are known by their look are secrets.
    """

    def __init__(
        self,
        secrets: Mapping[str, Collection[str]],
        patterns: Sequence[re.Pattern[bytes]] = (),
        *,
        tokens: bool = True,
    ) -> None:
        self.patterns = tuple(patterns)
        self._tokens = tokens
        names: dict[str, str] = {}
        for name in sorted(secrets):
            for value in secrets[name]:
                names.setdefault(value, name)
        known = [placeholder(name) for name in secrets]
        # Longest first: a value can be part of another one.
        self._spellings = [
            Spellings(name, value, placeholder(name).encode())
            for value, name in sorted(names.items(), key=lambda item: (-len(item[0]), item))
            if not any(value in text for text in known)
        ]
        self.longest = max([LONGEST, *(8 * len(value) for value in names)])
        """No secret is spelled in more bytes, unless a pattern of the user's finds it."""
        self._begun: dict[bytes, str] = {}
        self._ends: set[bytes] = set()
        self._long: list[bytes] = []
        for forms in self._spellings:
            for text in forms.beginnings():
                for size in range(_TELLING, min(len(text), _FAR + 1)):
                    self._begun.setdefault(text[:size], forms.name)
                    self._ends.add(text[size - _TELLING : size])
                if len(text) > _FAR:
                    self._long.append(text)

    def find(self, data: bytes, start: int = 0, stop: int | None = None) -> list[Match]:
        """Return the secrets in a part of `data`, in order; none overlaps another."""
        stop = len(data) if stop is None else stop
        found = self._looks(data, start, stop)
        if self._spellings:
            encoded = [
                match
                for forms in self._spellings
                for match in forms.find_encoded(data, start, stop, self._redact_decoded)
            ]
            # A base64 text is masked from its first secret on, with all that follow in it.
            found = [*self._values(data, start, stop), *sorted(encoded), *found]
        return _apart(found)

    def undecided(self, data: bytes, start: int) -> int:
        """Return where in `data` a secret may have begun that is not over.

        What lies before `start` was found decided: a secret has but a few bytes there.
        """
        end = at = len(data)
        start = max(0, start - _TELLING + 1)
        if data[-_TELLING:] in self._ends:
            for size in range(min(_FAR, end - start), _TELLING - 1, -1):
                if data[end - size :] in self._begun:
                    at = end - size
                    break
        for text in self._long:
            begun = data.find(text[:_FAR], start)
            if 0 <= begun < at and text.startswith(data[begun:]):
                at = begun
        if self._tokens:
            at = min(at, unfinished(data, start))
        return at

    def cut_off(self, data: bytes) -> Match | None:
        """Return the secret that `data` ends in the middle of."""
        at = self.undecided(data, 0)
        name = self._begun.get(data[at : at + _FAR])
        if name is None:
            return None
        return Match(at, len(data), name, placeholder(name).encode())

    def _values(self, data: bytes, start: int, stop: int) -> list[Match]:
        return [match for forms in self._spellings for match in forms.find(data, start, stop)]

    def _looks(self, data: bytes, start: int, stop: int) -> list[Match]:
        found: list[Match] = []
        masked = list(_PLACEHOLDERS.finditer(data, start, stop)) if self.patterns else []
        for number, pattern in enumerate(self.patterns, 1):
            name = f"PATTERN_{number}"
            text = placeholder(name).encode()
            found += [
                Match(*match.span(), name, text)
                for match in pattern.finditer(data, start, stop)
                # What is masked stays as it is: an answer's placeholder comes back in a request.
                if match[0] and not any(_overlap(match, one) for one in masked)
            ]
        if self._tokens:
            found += [
                Match(begin, end, name, placeholder(name).encode(), may_grow=True)
                for begin, end, name in tokens(data, start, stop)
            ]
        return found

    def _redact_decoded(self, data: bytes) -> bytes:
        stop = len(data)
        return replace(data, _apart([*self._values(data, 0, stop), *self._looks(data, 0, stop)]))


def replace(data: bytes, matches: Sequence[Match]) -> bytes:
    """Return `data` with each match replaced."""
    if not matches:
        return data
    pieces, at = [], 0
    for match in matches:
        pieces += [data[at : match.start], match.text]
        at = match.end
    pieces.append(data[at:])
    return b"".join(pieces)


def _overlap(one: re.Match[bytes], other: re.Match[bytes]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _apart(found: list[Match]) -> list[Match]:
    """Drop what overlaps something found before it, and return the rest in order."""
    if len(found) < 2:
        return found
    kept: list[Match] = []
    for match in found:
        at = bisect(kept, match)
        after_previous = at == 0 or kept[at - 1].end <= match.start
        if after_previous and (at == len(kept) or match.end <= kept[at].start):
            kept.insert(at, match)
    return kept


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return metadata with placeholders for secrets, told by their names or by their look."""
    return {name: _clean(name, value) for name, value in metadata.items()}


def _clean(name: str, value: object) -> object:
    if isinstance(value, str):
        return _clean_text(name, value)
    if isinstance(value, Mapping):
        return {key: _clean(key if isinstance(key, str) else name, value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_clean(name, one) for one in value]
    return value


@lru_cache(maxsize=1024)
def _clean_text(name: str, text: str) -> str:
    # A sort key is no secret; an API key is, and so is one that only chance can have written.
    if not _KEY_TO_SOMETHING.search(name.lower()) and not _CHANCE.fullmatch(text):
        telling = _KEY.sub("", name)
    else:
        telling = name
    for secret in sorted(secret_values(telling, text), key=len, reverse=True):
        text = text.replace(secret, placeholder(name))
    data = text.encode("utf-8", "surrogatepass")
    for start, end, kind in sorted(tokens(data, 0, len(data)), reverse=True):
        data = data[:start] + placeholder(kind).encode() + data[end:]
    return data.decode("utf-8", "replace")
