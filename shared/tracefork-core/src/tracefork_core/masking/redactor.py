"""Find secrets in bytes and replace each by a placeholder.

A placeholder contains the name of the secret and nothing of its value. So a replay with another
value of the same variable makes, once masked, the same request.
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
"""Fewer bytes at the end of a piece do not suggest that a secret begins there."""
_FAR = 64
_KEY = re.compile(r"(?<![A-Za-z0-9])keys?(?![A-Za-z0-9])", re.IGNORECASE)
_SECRET_KEY = re.compile(
    r"(access|account|api|auth|encryption|license|master|private|secret|service|signing)"
    r"[-_. ]?keys?"
)
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")


def placeholder(name: str) -> str:
    """Return the text that replaces a secret on a tape."""
    return PLACEHOLDER + _ODD.sub("_", name)


class Redactor:
    """Find given secrets; the result for the same bytes is always the same.

    Args:
        secrets: values by name. If names share a value, the first name in order counts.
        patterns: regular expressions whose matches are secrets too, named PATTERN_1, PATTERN_2 …
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
        # Longest first: one value can be part of another.
        self._spellings = [
            Spellings(name, value, placeholder(name).encode())
            for value, name in sorted(names.items(), key=lambda item: (-len(item[0]), item))
            if not any(value in text for text in known)
        ]
        self.longest = max([LONGEST, *(8 * len(value) for value in names)])
        """The most bytes that a secret has in any spelling; the user's patterns may find more."""
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
        """Return the secrets in `data[start:stop]`, in order and without overlaps."""
        stop = len(data) if stop is None else stop
        matches = self._looks(data, start, stop)
        if self._spellings:
            encoded = [
                match
                for forms in self._spellings
                for match in forms.find_encoded(data, start, stop, self._redact_decoded)
            ]
            # A base64 text is one match from its first secret on: it masks all later ones too.
            matches = [*self._values(data, start, stop), *sorted(encoded), *matches]
        return _apart(matches)

    def undecided(self, data: bytes, start: int) -> int:
        """Return where in `data` a secret may begin that continues after it, or `len(data)`.

        Bytes before `start` were decided earlier: a secret can reach only a few bytes into them.
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
        """Return the secret that the end of `data` cuts off, if any."""
        at = self.undecided(data, 0)
        name = self._begun.get(data[at : at + _FAR])
        if name is None:
            return None
        return Match(at, len(data), name, placeholder(name).encode())

    def _values(self, data: bytes, start: int, stop: int) -> list[Match]:
        return [match for forms in self._spellings for match in forms.find(data, start, stop)]

    def _looks(self, data: bytes, start: int, stop: int) -> list[Match]:
        matches: list[Match] = []
        masked = list(_PLACEHOLDERS.finditer(data, start, stop)) if self.patterns else []
        for number, pattern in enumerate(self.patterns, 1):
            name = f"PATTERN_{number}"
            text = placeholder(name).encode()
            matches += [
                Match(*match.span(), name, text)
                for match in pattern.finditer(data, start, stop)
                # Placeholders stay: one from a response comes back in later requests.
                if match[0] and not any(_overlap(match, other) for other in masked)
            ]
        if self._tokens:
            matches += [
                Match(begin, end, name, placeholder(name).encode(), may_grow=True)
                for begin, end, name in tokens(data, start, stop)
            ]
        return matches

    def _redact_decoded(self, data: bytes) -> bytes:
        stop = len(data)
        return replace(data, _apart([*self._values(data, 0, stop), *self._looks(data, 0, stop)]))


def replace(data: bytes, matches: Sequence[Match]) -> bytes:
    """Return `data` with each match replaced by its placeholder."""
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


def _apart(matches: list[Match]) -> list[Match]:
    """Drop each match that overlaps an earlier one of the list, and sort the rest."""
    if len(matches) < 2:
        return matches
    apart: list[Match] = []
    for match in matches:
        at = bisect(apart, match)
        after_previous = at == 0 or apart[at - 1].end <= match.start
        if after_previous and (at == len(apart) or match.end <= apart[at].start):
            apart.insert(at, match)
    return apart


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return a checkpoint's metadata with placeholders for secrets, by their names or look.

    Needed because LangGraph stores a run's whole config as metadata of each checkpoint, including
    provider keys.
    """
    return {name: _clean(name, value) for name, value in metadata.items()}


def _clean(name: str, value: object) -> object:
    if isinstance(value, str):
        return _clean_text(name, value)
    if isinstance(value, Mapping):
        return {key: _clean(key if isinstance(key, str) else name, value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_clean(name, item) for item in value]
    return value


@lru_cache(maxsize=1024)
def _clean_text(name: str, text: str) -> str:
    # A sort key is not a secret. An API key is, and so is a key whose value looks random.
    is_key = _SECRET_KEY.search(name.lower()) or _RANDOM.fullmatch(text)
    judged = name if is_key else _KEY.sub("", name)
    for secret in sorted(secret_values(judged, text), key=len, reverse=True):
        text = text.replace(secret, placeholder(name))
    data = text.encode("utf-8", "surrogatepass")
    for start, end, kind in sorted(tokens(data, 0, len(data)), reverse=True):
        data = data[:start] + placeholder(kind).encode() + data[end:]
    return data.decode("utf-8", "replace")
